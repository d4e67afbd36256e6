// core/runtime/cancellation.h — CancellationScope, which lets another thread end calls.
#pragma once

#include <exception>
#include <memory>
#include <stop_token>

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Thrown by a call that another thread cancelled.
class CancelledError : public Error {
 public:
  using Error::Error;
};

/// Ends the loops that this thread runs with a CancelledError soon after a stop is requested of the
/// token. Applies during the scope's lifetime to endless loops too, in eager mode and every
/// executor, and to gradient loops.
///
///   std::stop_source source;  // given to another thread, which calls source.request_stop()
///   const CancellationScope scope(source.get_token());
///   y = f(x);
///
/// A waiting thread serves as a deadline:
///
///   std::jthread deadline([&](std::stop_token over) {
///     std::mutex mutex;
///     std::unique_lock lock(mutex);
///     std::condition_variable_any().wait_for(lock, over, 5s, [] { return false; });
///     source.request_stop();  // harmless if the call has returned
///   });
///
/// Loops check the token in every iteration. The dataflow executor checks it at every op, also in
/// graphs without loops. Running ops finish. The function can be called again afterwards. Scopes
/// nest, and each counts: a loop inside a nested scope also ends with the outer scope's token.
class CancellationScope {
 public:
  explicit CancellationScope(std::stop_token token);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  struct Both;
  std::unique_ptr<Both> both_;  ///< set if the outer scope can stop too
  std::stop_token token_;
  const std::stop_token* outer_;
};

/// Returns a token that is stopped by any token of this thread's scopes. Without a scope it never
/// stops.
std::stop_token cancellation_token();
/// Throws CancelledError if cancellation_token() is stopped.
void check_cancellation();
/// Throws CancelledError. failure: an op's exception that the call would have thrown later; its
/// text is added to the message.
[[noreturn]] void throw_cancelled(std::exception_ptr failure = {});

}  // namespace reel
REEL_API_END
