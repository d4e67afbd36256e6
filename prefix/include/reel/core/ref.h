// core/ref.h — Ref<T>, a pointer to an object that counts its references itself.
#pragma once

#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace reel {

/// Base of objects held by Ref. The count is atomic: handles may be copied from several threads at
/// once.
struct RefCounted {
  mutable std::atomic<std::uint32_t> refs{0};

  RefCounted() = default;
  RefCounted(const RefCounted&) {}
  RefCounted& operator=(const RefCounted&) { return *this; }

  void retain() const {
    // An atomic read-modify-write costs more than a small op may; a process that never started a
    // thread needs none.
    if (__libc_single_threaded)
      refs.store(refs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
      refs.fetch_add(1, std::memory_order_relaxed);
  }
  /// Gives one reference back -> whether it was the last.
  bool release() const {
    const std::uint32_t count = refs.load(std::memory_order_acquire);
    if (count == 1) return true;
    if (!__libc_single_threaded) return refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
    refs.store(count - 1, std::memory_order_relaxed);
    return false;
  }
  /// The same for objects that a table may hand out while their last owner goes (kIsFoundAgain):
  /// the count reaches zero first, which tells the table.
  bool release_to_zero() const {
    if (!__libc_single_threaded) return refs.fetch_sub(1, std::memory_order_acq_rel) == 1;
    const std::uint32_t count = refs.load(std::memory_order_relaxed) - 1;
    refs.store(count, std::memory_order_relaxed);
    return count == 0;
  }
};

/// Owns one reference to a T; the last owner calls T::destroy(const T*).
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
  /// Nobody else holds the object.
  bool unique() const { return object_->refs.load(std::memory_order_acquire) == 1; }
  /// Hands the reference to the caller, who must give it to adopt() later.
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
