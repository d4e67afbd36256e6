// core/runtime/helpers.h — Helpers, threads for work with a parallelism that is known only while it
// runs.
#pragma once

#include <memory>

namespace reel {

/// Threads beside the caller's, from the threads of parallel_for, called one by one.
///
/// They run like parts of parallel_for, each in its own eager mode. A call of parallel_for inside
/// the work uses the same threads.
class Helpers {
 public:
  /// Starts no thread yet. Helpers call work(context), several at once; it must not throw.
  Helpers(void (*work)(void*), void* context);
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  /// Returns the largest number of helpers that run at once.
  int most() const;
  /// Calls lead(context), on this thread or another one of the arena; meanwhile call() may be used.
  /// Returns when lead and all helpers have returned. Requires: lead does not throw.
  void lead(void (*lead)(void*));
  /// Lets one more helper run work as soon as a thread is free; if none is free before lead()
  /// returns, the caller's thread runs it then. May be called from any thread that works here.
  /// Returns false and runs nothing if there is no memory for the call.
  bool call();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reel
