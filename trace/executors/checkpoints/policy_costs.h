// trace/executors/checkpoints/policy_costs.h — predicts the memory and recomputation of a loop
// under a policy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reel/core/ops/control/recompute.h"

namespace reel {

/// Returns the sum of the tensors' bytes; nothing if a size is known only at run time.
std::optional<std::int64_t> bytes_of(std::span<const TensorType> types);

/// Predicted maxima of a loop under a Checkpoint policy, from its start to the end of its gradient;
/// -1 if only a run can tell.
struct PolicyCosts {
  std::int64_t checkpoints = -1;  ///< bytes of checkpoints in memory, with their step numbers
  std::int64_t steps = -1;        ///< time steps recomputed together, with residuals in memory
  std::int64_t bytes = -1;        ///< bytes of these residuals
  double runs = -1;               ///< average runs of a time step, forward and recomputed
  bool has_arrays =
      false;  ///< the state has arrays; `checkpoints` leaves out elements that iterations made
};
/// Returns the costs of a loop under a policy. If the number of time steps is unknown, returns the
/// bound of the policy itself: under a budget, half of it for states and half for residuals, or the
/// bytes of one state and of one iteration's residuals if they are known and more.
///
/// inputs, outputs: types of the recompute op's inputs and outputs.
/// steps: time steps of the loop, if known.
/// chunk_size: time steps of a chunk; 1 if the loop ran step by step.
/// requested: time steps that the gradient requests at once; a chunked gradient requests chunks.
PolicyCosts policy_costs(const RecomputeAttrs& attrs, std::span<const TensorType> inputs,
                         std::span<const TensorType> outputs, std::optional<std::int64_t> steps,
                         std::int64_t chunk_size, std::int64_t requested);

/// Decides whether a loop that swaps puts its checkpoints into a file. Under a budget it does so
/// only if this lowers the memory: a file keeps the space of dropped checkpoints.
class FileOfCheckpoints {
 public:
  /// carries: bytes of each carry. arrays: bytes of the arrays in the state, which stay in memory.
  FileOfCheckpoints(const LoopAttrs& loop, std::vector<std::int64_t> carries,
                    std::int64_t arrays = 0);
  bool is_used() const;
  /// Returns the maximum bytes of checkpoints in memory after `puts` checkpoints were written; puts
  /// = -1 for any number.
  std::int64_t in_memory(std::int64_t puts) const;
  /// Returns the slots of a budget; 0 without one.
  std::int64_t slots() const { return slots_; }

 private:
  const LoopAttrs& loop_;
  std::vector<std::int64_t> carries_;
  std::int64_t state_, slots_;
};

/// Returns the maximum bytes in memory of a stack that lies in a file: its share of the window in
/// blocks, at least two, and three blocks in flight.
///
/// step_bytes: bytes of a step or checkpoint.
/// count: their number; -1 if only a run tells.
/// together: steps that are written at once.
/// requested: steps of one request; the window holds a copy of them if they span blocks.
/// is_expected: the loop knows `count` when it begins, and allocates that much. Otherwise a block
/// grows to up to twice its contents, and while it is copied the old memory exists as well.
std::int64_t spilled_bytes_in_memory(const LoopAttrs& loop, std::int64_t step_bytes,
                                     std::int64_t count, std::int64_t together,
                                     std::int64_t requested, bool is_expected = true);

}  // namespace reel
