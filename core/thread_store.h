// core/thread_store.h — ThreadStore, an object per thread that code may still ask for at the
// thread's end.
#pragma once

namespace reel {

/// One T for each thread, made when first asked for and destroyed with the thread.
///
/// Destructors of other thread_local objects, and on the main thread those of global objects, run
/// after it is gone and may use the library: they get null, and work without the T. A plain
/// thread_local object would be used after its destructor has run.
///
/// Tag: any type; it tells apart stores of the same T.
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
