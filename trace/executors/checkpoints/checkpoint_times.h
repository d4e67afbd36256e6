// trace/executors/checkpoints/checkpoint_times.h — CheckpointTimes: when a loop takes checkpoints,
// and of which values.
#pragma once

#include <optional>
#include <vector>

#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"
#include "reel/trace/executors/checkpoints/policy_costs.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {

/// Decides for all checkpoint stacks of a loop when checkpoints are taken, and which values they
/// hold.
class CheckpointTimes {
 public:
  explicit CheckpointTimes(const LoopAttrs& attrs);

  bool takes_any() const { return takes_any_; }
  /// Returns the body input that the stack takes, position and slices counted; -1 if an op of the
  /// body makes the value.
  int source(std::size_t stack) const { return sources_[stack]; }

  /// Prepares the decision for the iteration behind the first `steps` steps.
  ///
  /// bytes_of_carry(i): present size of a carry. States count with their largest size so far.
  /// Arrays count with their initial size, since checkpoints share their elements.
  template <class F>
  void begin(std::int64_t steps, F&& bytes_of_carry) {
    opens_file_ = !kept_ && spills_;
    if (opens_file_) find_out_about_file(bytes_of_carry);
    if (!kept_) kept_.emplace(attrs_.policy.steps, attrs_.policy.bytes);  // slots at most
    if (attrs_.policy.bytes && kept_->is_due(steps)) {
      std::int64_t bytes = 0;
      for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
        if (is_array(i) && steps == 0) bytes_of_arrays_ += bytes_of_carry(i);
        if (!is_array(i)) bytes += bytes_of_carry(i);
      }
      kept_->allow(slots_of(attrs_, bytes + bytes_of_arrays_));
    }
    now_ = kept_->before(steps);
  }
  /// Returns whether to take a checkpoint in this iteration, and how often to drop every second one
  /// before.
  const CheckpointSchedule::Decision& now() const { return now_; }
  /// Returns true if spilled stacks go to a file from now on. Valid after begin(); true once at
  /// most.
  bool opens_file() const { return opens_file_; }
  /// Returns how many checkpoints are written to the file; nothing if the trip count is unknown.
  ///
  /// chunks: chunks, or iterations, of the loop, if known. chunk_size: time steps of one.
  std::optional<std::int64_t> puts(const std::optional<std::int64_t>& chunks,
                                   std::int64_t chunk_size) const {
    if (!chunks) return std::nullopt;
    return checkpoints_taken(attrs_, first_slots_, *chunks, chunk_size);
  }

 private:
  template <class F>
  void find_out_about_file(F&& bytes_of_carry) {
    std::int64_t arrays = 0;
    std::vector<std::int64_t> carries;
    for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
      const std::int64_t bytes = bytes_of_carry(i);
      is_array(i) ? arrays += bytes : carries.emplace_back(bytes);
    }
    const FileOfCheckpoints file(attrs_, carries, arrays);
    opens_file_ = file.is_used() || are_spill_blocks_small();
    first_slots_ = file.slots();
  }
  bool is_array(std::size_t carry) const {
    return attrs_.body.graph->types[body_inputs(attrs_).carries[carry]].is_list();
  }

  const LoopAttrs& attrs_;
  bool takes_any_, spills_ = false, opens_file_ = false;
  std::int64_t first_slots_ = 0;  ///< checkpoint slots of a budget, before the first iteration
  std::vector<int> sources_;      ///< by stack, see source()
  std::optional<CheckpointSchedule> kept_;
  std::int64_t bytes_of_arrays_ = 0;  ///< before the first iteration
  CheckpointSchedule::Decision now_;
};

}  // namespace reel
