#include "reel/core/runtime/detect_nan.h"

#include <utility>

namespace reel {
namespace {
constinit thread_local detail::RunningEntries* innermost_entries = nullptr;
}

DetectNan::DetectNan(DetectNanOptions options) : options_(options), outer_(thread_mode.nan_checks) {
  thread_mode.set_nan_checks(&options_);
}
DetectNan::~DetectNan() { thread_mode.set_nan_checks(outer_); }

namespace detail {

RunningEntries::RunningEntries(Tensors running)
    : running_(std::move(running)), outer_(innermost_entries) {
  innermost_entries = this;
}
RunningEntries::~RunningEntries() { innermost_entries = outer_; }

Tensors RunningEntries::masks() {
  Tensors result;
  for (const RunningEntries* at = innermost_entries; at; at = at->outer_)
    result.insert(result.end(), at->running_.begin(), at->running_.end());
  return result;
}

}  // namespace detail
}  // namespace reel
