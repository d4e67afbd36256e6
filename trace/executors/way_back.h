// trace/executors/way_back.h — how a loop that kept some of its steps is gone back over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reel/core/ops/recall.h"
#include "reel/trace/executors/revolve.h"

namespace reel {

/// Which units, steps or the chunks in which the loop went, are run again, and behind which
/// checkpoint: a run of them (a leaf) at a time, the last one first.
///
/// Under Checkpoint::every a leaf is all that lies between two checkpoints, under a budget what
/// half of it holds. Where many steps are asked for at a time, it is whole such requests under a
/// budget, over checkpoints if need be, so that each is one run; of a loop in chunks, a request may
/// be several runs.
class WayBack {
 public:
  /// kept: the unit behind each checkpoint. units: in all.
  WayBack(const LoopAttrs& loop, std::vector<std::int64_t> kept, std::int64_t units,
          bool is_in_chunks)
      : loop_(loop), kept_(std::move(kept)), units_(units), is_in_chunks_(is_in_chunks) {}

  struct Bytes {
    std::int64_t state, unit;  ///< of a state, and of what a unit saves
  };
  /// What those behind a checkpoint take; asked of budgets only.
  using Measure = std::function<Bytes(std::size_t checkpoint)>;

  /// For the run that ends at `end`, the last of what is left of a request, from `begin` on, of
  /// `together` units. Whether other states than before are to run it from: that at checkpoint().
  bool find(std::int64_t begin, std::int64_t end, std::int64_t together, const Measure& measure);
  std::size_t checkpoint() const { return checkpoint_; }
  /// Behind that.
  std::int64_t first() const { return kept_[checkpoint_]; }
  /// What is to be run before the leaf that ends at `end`, as Revolve has it.
  std::vector<Revolve::Advance> way_to(std::int64_t end);
  /// For how many states there is to be memory, that of the checkpoint itself included.
  std::size_t states() const { return revolve_->checkpoints(); }
  /// Where the leaf begins that these lead to.
  std::int64_t begin_behind(const std::vector<Revolve::Advance>& advances) const {
    return advances.empty() ? std::max(revolve_->last_checkpoint(), first()) : advances.back().to;
  }
  std::span<const std::int64_t> kept() const { return kept_; }

 private:
  std::size_t checkpoint_before(std::int64_t unit) const;
  std::int64_t end_of_gap(std::size_t checkpoint) const {
    return checkpoint + 1 < kept_.size() ? kept_[checkpoint + 1] : units_;
  }
  /// Leaves are whole requests, and may begin before a checkpoint.
  bool is_over_gaps(std::int64_t together) const {
    return loop_.checkpoint_bytes && !is_in_chunks_ && together > 1;
  }
  bool goes_on(std::int64_t begin, std::int64_t end, std::int64_t together) const;

  const LoopAttrs& loop_;
  std::vector<std::int64_t> kept_;
  std::int64_t units_;
  bool is_in_chunks_;
  std::size_t checkpoint_ = 0;
  std::int64_t leaf_ = 1, origin_ = 0;
  std::int64_t together_ = 0;       ///< units of a request that is run at once; else 0
  std::optional<Revolve> revolve_;  ///< over the units behind the checkpoint; from `origin_`, that
                                    ///< of a leaf that begins before it
};

/// All that the steps of the loop save lies one behind the other, in the order of positions.
/// inputs: types of the recall op's, those of the loop first.
bool saves_in_one_piece(const RecallAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
