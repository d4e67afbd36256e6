#include "reel/core/cancellation.h"

#include <utility>

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

void throw_cancelled() {
  throw CancelledError("the call was cancelled, as its CancellationScope's token was asked to");
}

std::stop_token cancellation_token() { return innermost ? *innermost : std::stop_token(); }

}  // namespace reel
