// core/source.h — SourceId, where in a program an op was applied.
#pragma once

#include <cstdint>
#include <vector>

namespace reel {

/// Stands for a list of return addresses, the innermost call first. It costs some microseconds and
/// is taken of what is recorded only; what the addresses mean is asked for when somebody looks
/// (core/source_lines.h).
using SourceId = std::uint32_t;
inline constexpr SourceId kNoSource = 0;

/// Where this thread is; where a SourceScope is open, what that says.
SourceId source_here();
/// The return addresses; none of kNoSource.
std::vector<std::uintptr_t> addresses_of(SourceId source);

namespace detail {
/// What is recorded on this thread comes from there; and where what was recorded last came from.
inline constinit thread_local SourceId open_source = kNoSource, last_source = kNoSource;
}  // namespace detail

/// What is recorded while it is open comes from where `source` says: the gradient of an op from
/// where the op was applied. kNoSource leaves everything as it is.
class SourceScope {
 public:
  explicit SourceScope(SourceId source) : before_(detail::open_source) {
    if (source != kNoSource) detail::open_source = source;
  }
  ~SourceScope() { detail::open_source = before_; }
  SourceScope(const SourceScope&) = delete;
  SourceScope& operator=(const SourceScope&) = delete;

 private:
  SourceId before_;
};

}  // namespace reel
