// trace/passes/analysis/filled_padding.h — an analysis of values whose padding counts.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns, by value, whether its padding may hold numbers that readers need: -inf before a
/// maximum, 1 before a product. If a pass computes such a value outside of the body, the body must
/// read it with FinishedFill::running_padding; an input that is read so has such padding.
std::vector<std::uint8_t> find_filled_padding(const LoopAttrs& attrs);

}  // namespace reel
