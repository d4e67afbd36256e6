#include "reel/core/runtime/detect_nan.h"

#include <utility>

namespace reel {
namespace {
constinit thread_local detail::LiveEntries* innermost = nullptr;
}

DetectNan::DetectNan(DetectNanOptions options) : options_(options), outer_(thread_mode.nan_checks) {
  thread_mode.set_nan_checks(&options_);
}
DetectNan::~DetectNan() { thread_mode.set_nan_checks(outer_); }

namespace detail {

LiveEntries::LiveEntries(Tensors live) : live_(std::move(live)), outer_(innermost) {
  innermost = this;
}
LiveEntries::~LiveEntries() { innermost = outer_; }

Tensors LiveEntries::masks() {
  Tensors result;
  for (const LiveEntries* at = innermost; at; at = at->outer_)
    result.insert(result.end(), at->live_.begin(), at->live_.end());
  return result;
}

}  // namespace detail
}  // namespace reel
