// core/helpers.h — Helpers, threads for work that finds out while it runs how many it can use.
#pragma once

#include <memory>

namespace reel {

/// Threads beside the caller's, of those that parallel_for uses, asked for one by one.
///
/// They work as parts of parallel_for do, in an eager mode of their own. A call of parallel_for
/// inside the work stays among the same threads.
class Helpers {
 public:
  /// work(context) is what each of them does, several at once; it must not throw.
  Helpers(void (*work)(void*), void* context);
  ~Helpers();
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  /// How many can run at once.
  int most() const;
  /// Calls lead(context), which must not throw, on this thread: while it runs, helpers can be
  /// called. Returns when they have returned.
  void lead(void (*lead)(void*));
  /// One more calls work as soon as it is free; where none is before lead() returns, the caller's
  /// thread does then. From any thread that works here. Returns false, and calls none, if there is
  /// no memory for the call.
  bool call();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reel
