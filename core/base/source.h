// core/base/source.h — SourceId, the place in a program where an op was applied.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Identifies a list of return addresses, the innermost call first. It costs some microseconds, and
/// is taken for recorded ops and errors only. Addresses are translated when they are printed
/// (core/base/source_lines.h).
using SourceId = std::uint32_t;
inline constexpr SourceId kNoSource = 0;

/// Returns the current place of this thread, or the place of an open SourceScope.
SourceId source_here();
/// Returns the return addresses; none for kNoSource.
std::vector<std::uintptr_t> addresses_of(SourceId source);

namespace detail {
/// The place that an open SourceScope gives, and the place of the last recorded op. Per thread.
inline constinit thread_local SourceId open_source = kNoSource, last_source = kNoSource;
}  // namespace detail

/// Gives `source` to records that this thread makes during its lifetime: the gradient of an op has
/// the place where the op was applied. kNoSource has no effect.
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
REEL_API_END
