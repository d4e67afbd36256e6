#include "reel/core/runtime/cancellation.h"

#include <utility>

#include "reel/core/base/str.h"

namespace reel {
namespace {
constinit thread_local const std::stop_token* innermost_token = nullptr;
}

/// A stop source that is stopped as soon as either of two tokens is.
struct CancellationScope::Both {
  struct Ask {
    std::stop_source& source;
    void operator()() const { source.request_stop(); }
  };
  Both(const std::stop_token& a, const std::stop_token& b)
      : of_a(a, Ask{source}), of_b(b, Ask{source}) {}
  std::stop_source source;
  std::stop_callback<Ask> of_a, of_b;
};

CancellationScope::CancellationScope(std::stop_token token)
    : token_(std::move(token)), outer_(innermost_token) {
  if (outer_ && outer_->stop_possible() && *outer_ != token_) {
    if (token_.stop_possible()) {
      both_ = std::make_unique<Both>(token_, *outer_);
      token_ = both_->source.get_token();
    } else {
      token_ = *outer_;
    }
  }
  innermost_token = &token_;
}
CancellationScope::~CancellationScope() { innermost_token = outer_; }

void check_cancellation() {
  if (innermost_token && innermost_token->stop_requested()) throw_cancelled();
}

void throw_cancelled(std::exception_ptr failure) {
  CancelledError error("the call was cancelled, as its CancellationScope's token was asked to");
  if (failure) try {
      std::rethrow_exception(failure);
    } catch (const CancelledError&) {  // an op that was cancelled, as the call was
    } catch (const std::exception& before) {
      error.add_line(
          str("An op had failed before, while earlier ops were still running:\n", before.what()));
    } catch (...) {
    }
  throw error;
}

std::stop_token cancellation_token() {
  return innermost_token ? *innermost_token : std::stop_token();
}

}  // namespace reel
