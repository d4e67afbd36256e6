// core/base/ref.h — Ref<T>, an intrusive reference-counted pointer.
#pragma once

#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Base of objects held by Ref. The count is atomic: handles may be copied by several threads at
/// once.
struct RefCounted {
  mutable std::atomic<std::uint32_t> refs{0};

  RefCounted() = default;
  RefCounted(const RefCounted&) {}
  RefCounted& operator=(const RefCounted&) { return *this; }

  void retain() const {
    // An atomic read-modify-write may cost more than a small op. A process that never started a
    // thread does not need it.
    if (__libc_single_threaded)
      refs.store(refs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
      refs.fetch_add(1, std::memory_order_relaxed);
  }
  /// Releases one reference. Returns true if it was the last.
  bool release() const {
    const std::uint32_t count = refs.load(std::memory_order_acquire);
    if (count == 1) return true;
    if (!__libc_single_threaded) return refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
    refs.store(count - 1, std::memory_order_relaxed);
    return false;
  }
  /// Releases one reference of an object that a table may hand out again at the same time
  /// (kIsFoundAgain). The count reaches zero before the object is destroyed, so that the table can
  /// tell.
  bool release_to_zero() const {
    if (!__libc_single_threaded) return refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
    const std::uint32_t count = refs.load(std::memory_order_relaxed) - 1;
    refs.store(count, std::memory_order_relaxed);
    return count == 0;
  }
};

/// Owns one reference to a T. The last owner calls T::destroy(const T*).
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(Ref<U> other) : object_(other.leak()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { release(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }
  /// Returns true if the reference count is one. Requires a non-null Ref.
  bool unique() const { return object_->refs.load(std::memory_order_acquire) == 1; }
  /// Returns the pointer with its reference, and becomes null. The caller must pass it to adopt()
  /// later.
  T* leak() { return std::exchange(object_, nullptr); }
  static Ref adopt(T* object) {
    Ref result;
    result.object_ = object;
    return result;
  }

 private:
  void retain() const {
    if (object_) object_->retain();
  }
  void release() {
    constexpr bool kIsFoundAgain = requires { T::kIsFoundAgain; };
    if (object_ && (kIsFoundAgain ? object_->release_to_zero() : object_->release()))
      T::destroy(object_);
  }

  T* object_ = nullptr;
};

}  // namespace reel
REEL_API_END
