// trace/executors/plan/base/explain_format.h — words for sizes, times and loops in explain().
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reel/core/base/quantities.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

/// Returns for example "2 x f32[8,4], i32[]": equal consecutive types are counted.
std::string types_text(const std::vector<TensorType>& types);

/// Types of a loop's inputs and outputs by kind. captures: only those that its body reads.
struct LoopTypes {
  std::vector<TensorType> carries, slices, captures, stacks, sums;
};
/// in, out: of the op, as far as they are known.
LoopTypes types_of(const LoopAttrs& attrs, const std::vector<TensorType>& in,
                   const std::vector<TensorType>& out);

/// Returns for example "2.0 times".
std::string runs_text(double runs);

/// Returns the number of time steps as text, or the condition that ends the loop.
std::string steps_text(const LoopAttrs& attrs, std::span<const TensorType> in);

}  // namespace reel
