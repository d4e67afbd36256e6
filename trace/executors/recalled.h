// trace/executors/recalled.h — Recalled, the steps of a loop run again from its checkpoints.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "reel/core/ops/recall.h"
#include "reel/core/saved_steps.h"
#include "reel/trace/executors/segments.h"
#include "reel/trace/executors/way_back.h"

namespace reel {

/// How many steps have been run again, since the program began: to come to others, and to save what
/// they would have saved.
struct RecalledSteps {
  std::int64_t advanced = 0, saved = 0;
};
RecalledSteps recalled_steps();

/// What a loop would have saved, of the runs of steps that are in memory: a window.
///
/// Under Checkpoint::every, a window is all that lies between two checkpoints. Under a budget, it
/// has as many steps as half of the budget holds; where there are more between two checkpoints,
/// Revolve says which are run to come to them. What the loop did in chunks is done in the same
/// chunks again, so that it has the same bits: units here are such, or else steps, and are numbered
/// as the loop went.
///
/// A gradient in chunks asks for many steps at a time. Under a budget, those of a loop that went
/// step by step are run in one go, over checkpoints if need be. What comes of several runs is put
/// together as they come, and each of them goes at once, but for what lies before: so beside what
/// was asked for, one run is in memory.
class Recalled final : public SavedSteps {
 public:
  /// inputs: those of the op. types: of the saved values, for all steps.
  Recalled(const RecallAttrs& attrs, Tensors inputs, std::vector<TensorType> types);
  void need(std::int64_t first, std::int64_t count) override;
  char* data(std::size_t i, std::int64_t step) override;
  Tensor tensor(std::size_t i, std::int64_t step) override;
  std::int64_t count() const override { return segments_.steps(); }
  std::int64_t bytes_held() const override;

 private:
  /// The loop's state before a unit.
  struct State {
    std::int64_t unit;
    Tensors carries;
  };
  /// A run of units that are in memory.
  struct Part {
    std::int64_t begin, end;
    Tensors whole;                  ///< of each value that is dense, all steps, by position
    std::vector<Tensors> elements;  ///< of others, step by step
  };
  const LoopAttrs& loop() const { return attrs_.saving(); }
  Tensor carry_at(std::size_t carry, std::size_t checkpoint) const;
  std::int64_t step_of(std::int64_t unit) const;
  std::int64_t unit_at(std::int64_t step) const;
  std::int64_t first_position(std::int64_t begin, std::int64_t end) const {
    return loop().is_reverse ? segments_.steps() - step_of(end) : step_of(begin);
  }
  Segments::Ran run(std::int64_t begin, std::int64_t end, const Tensors& carries, bool saves);
  State state_at(std::size_t checkpoint) const;
  State last_state_behind(std::size_t checkpoint);
  bool state_has_any_size() const;
  WayBack::Bytes bytes_behind(std::size_t checkpoint);
  WayBack::Bytes bytes_at(const State& state);
  std::int64_t bytes_of_step(const State& state);
  std::int64_t run_before(std::int64_t begin, std::int64_t end, std::int64_t together);
  void put_together(const Part& part);
  bool is_dense(std::size_t i) const { return !types_[i].is_list(); }
  /// The loop's stack that value i is of.
  std::size_t stack_of(std::size_t i) const {
    return static_cast<std::size_t>(attrs_.first_saved) + i;
  }
  Part as_part(std::int64_t begin, std::int64_t end, Tensors saved) const;
  static Tensor in_one_piece(Tensors steps);
  /// What has the steps that were asked for, and the position of the first that it has.
  struct Place {
    const Part& part;
    std::int64_t first;
  };
  Place place() const {
    if (piece_) return {*piece_, first_};
    return {parts_.back(), first_position(parts_.back().begin, parts_.back().end)};
  }

  const std::uint64_t begin_ = next_block_id();  ///< what has a later id was made here
  RecallAttrs attrs_;
  std::vector<TensorType> types_;
  Segments segments_;
  std::int64_t unit_ = 1, units_ = 0;  ///< steps of a unit, and how many there are
  Tensors checkpoints_;                ///< of each carry, the list of what it was at each
  std::vector<Tensors> in_memory_;     ///< the elements of those lists that do not lie in a file
  std::optional<WayBack> way_;
  std::vector<State> states_;            ///< to run units from
  std::deque<Part> parts_;               ///< the window, one behind the other
  std::int64_t first_ = -1, count_ = 0;  ///< what was asked for last
  bool is_there_ = false;                ///< that, whatever was thrown meanwhile
  std::optional<Part> piece_;            ///< that, where it was put together
};

}  // namespace reel
