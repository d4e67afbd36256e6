// trace/executors/plan/words.h — what explain() says of sizes, times and loops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/core/quantities.h"

namespace reel {

/// "2 x f32[8,4], i32[]": equal ones that follow each other once.
std::string types_text(const std::vector<TensorType>& types);

/// Bytes of a tensor whose sizes are known; else 0.
std::int64_t dense_bytes(const TensorType& type);
/// Of all of them.
std::int64_t dense_bytes(const std::vector<TensorType>& types);

/// What a loop takes and gives, by kind; of captures, those that its body reads.
struct LoopTypes {
  std::vector<TensorType> carries, slices, captures, stacks, sums;
};
/// in, out: of the op, as far as they are known.
LoopTypes types_of(const LoopAttrs& attrs, const std::vector<TensorType>& in,
                   const std::vector<TensorType>& out);

/// "2.0 times".
std::string runs_text(double runs);

/// The number of a loop's steps, where it is that of a dim with a known size.
std::optional<std::int64_t> steps_of(const LoopAttrs& attrs, std::span<const TensorType> in);
/// That, or what ends the loop.
std::string steps_text(const LoopAttrs& attrs, std::span<const TensorType> in);

}  // namespace reel
