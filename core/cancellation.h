// core/cancellation.h — CancellationScope, calls that another thread can end.
#pragma once

#include <stop_token>

#include "reel/core/errors.h"

namespace reel {

/// A call that another thread asked to end.
class CancelledError : public Error {
 public:
  using Error::Error;
};

/// While it lives, functions that were jitted for the dataflow executor and that this thread calls
/// end with a CancelledError soon after the token is asked to stop, in an endless loop too:
///
///   std::stop_source source;  // given to another thread, which calls source.request_stop()
///   const CancellationScope scope(source.get_token());
///   y = f(x);
///
/// Ops that run already run to their end. The function can be called again afterwards. Scopes nest;
/// the innermost counts.
class CancellationScope {
 public:
  explicit CancellationScope(std::stop_token token);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  std::stop_token token_;
  const std::stop_token* outer_;
};

/// The token of this thread's innermost scope; one that never stops where there is none.
std::stop_token cancellation_token();

}  // namespace reel
