// core/cancellation.h — CancellationScope, calls that another thread can end.
#pragma once

#include <exception>
#include <memory>
#include <stop_token>

#include "reel/core/errors.h"

namespace reel {

/// A call that another thread asked to end.
class CancelledError : public Error {
 public:
  using Error::Error;
};

/// While it lives, loops that this thread runs end with a CancelledError soon after the token is
/// asked to stop, endless ones too: by every executor, eagerly, and on the way back through them.
///
///   std::stop_source source;  // given to another thread, which calls source.request_stop()
///   const CancellationScope scope(source.get_token());
///   y = f(x);
///
/// A deadline is a thread that waits for it:
///
///   std::jthread deadline([&](std::stop_token over) {
///     std::mutex mutex;
///     std::unique_lock lock(mutex);
///     std::condition_variable_any().wait_for(lock, over, 5s, [] { return false; });
///     source.request_stop();  // no harm where the call is over
///   });
///
/// A loop looks at the token in every iteration; the dataflow executor at every op, of graphs
/// without loops, too. Ops that run already run to their end. The function can be called again
/// afterwards. Scopes nest, and each counts: inside of a helper's own deadline, a loop ends with
/// the caller's token too.
class CancellationScope {
 public:
  explicit CancellationScope(std::stop_token token);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  struct Both;
  std::unique_ptr<Both> both_;  ///< where the scope around it can stop, too
  std::stop_token token_;
  const std::stop_token* outer_;
};

/// Asked to stop with any of the tokens of this thread's scopes; never where there is none.
std::stop_token cancellation_token();
/// Throws CancelledError where one of those tokens was asked to stop.
void check_cancellation();
/// failure: of an op, which the call would have thrown later; the message has it, too.
[[noreturn]] void throw_cancelled(std::exception_ptr failure = {});

}  // namespace reel
