#include "reel/core/cancellation.h"

#include <utility>

#include "reel/core/str.h"

namespace reel {
namespace {
constinit thread_local const std::stop_token* innermost = nullptr;
}

CancellationScope::CancellationScope(std::stop_token token)
    : token_(std::move(token)), outer_(std::exchange(innermost, &token_)) {}
CancellationScope::~CancellationScope() { innermost = outer_; }

void check_cancellation() {
  if (innermost && innermost->stop_requested()) throw_cancelled();
}

void throw_cancelled(std::exception_ptr failure) {
  CancelledError error("the call was cancelled, as its CancellationScope's token was asked to");
  if (failure) try {
      std::rethrow_exception(failure);
    } catch (const std::exception& before) {
      error.add_line(str("An op had failed before, but others that come first were not done yet:\n",
                         before.what()));
    } catch (...) {
    }
  throw error;
}

std::stop_token cancellation_token() { return innermost ? *innermost : std::stop_token(); }

}  // namespace reel
