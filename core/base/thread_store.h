// core/base/thread_store.h — ThreadStore, a per-thread object that may be accessed even at the
// thread's end.
#pragma once

namespace reel {

/// One T for each thread, made at first access and destroyed with the thread.
///
/// Destructors of other thread_local objects run after it is destroyed and may use the library. On
/// the main thread, destructors of global objects do too. They get null, and must work without the
/// T. A plain thread_local object would be used after its destruction.
///
/// Tag: any type; distinguishes stores of the same T.
template <class T, class Tag>
class ThreadStore {
 public:
  /// Returns this thread's object, or null if it has been destroyed.
  static T* get() {
    if (is_gone) return nullptr;
    static thread_local Holder holder;
    return &holder.object;
  }

 private:
  struct Holder {
    T object{};
    ~Holder() { is_gone = true; }  // before the object's own destructor runs
  };
  static inline constinit thread_local bool is_gone = false;
};

}  // namespace reel
