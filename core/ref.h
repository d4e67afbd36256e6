// core/ref.h — Ref<T>, a pointer to an object that counts its references itself.
#pragma once

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
    if (object_) object_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    // A sole owner needs no atomic read-modify-write, which is most of what freeing a small tensor
    // would cost.
    if (object_ && (object_->refs.load(std::memory_order_acquire) == 1 ||
                    object_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1))
      T::destroy(object_);
  }

  T* object_ = nullptr;
};

}  // namespace reel
