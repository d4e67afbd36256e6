// trace/executors/plan/loop/iteration_series.h — IterationSeries: iterations of a loop whose body
// is one fused op, run one after the other by the op's tile program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {

struct PlannedLoop;

/// The tile program of a loop's body, with the additions of the loop's sums, and the leaves of the
/// loop that it reads and writes.
///
/// A few element-wise ops take less time than the call of the body's plan and the loop's work
/// between two iterations. A series does both once for many iterations. Bits are the same.
class IterationSeries {
 public:
  /// An operand of the program: a carry, slice, capture (by number among the body's inputs) or sum;
  /// or a constant of the plan.
  struct Operand {
    LoopLeaf leaf;
    void* constant = nullptr;
  };

  struct RepeatedStack {
    std::size_t stack, carry;
  };

  /// Returns the series of a loop with a planned body and planned carries. Returns nothing if an
  /// iteration needs more than one fused op: a condition, finished entries, lists, residuals in a
  /// window, stacks of unknown length, a copy of a carry, the iteration's number.
  static std::optional<IterationSeries> make(const PlannedLoop& loop);

  TileProgram& program() const { return *program_; }
  const std::vector<Operand>& operands() const { return operands_; }
  /// Returns the leaf that each result of the program becomes: a carry, a stack or a sum.
  const std::vector<LoopLeaf>& results() const { return results_; }
  /// Returns the stacks of states that another stack holds too, with their carries. A series
  /// requires that both stacks share memory, so that each state is there already.
  const std::vector<RepeatedStack>& repeated_stacks() const { return repeated_stacks_; }
  /// Returns the number of the fused op's record in the body.
  std::size_t record() const { return record_; }

 private:
  class Builder;

  std::unique_ptr<TileProgram> program_;
  std::vector<Operand> operands_;
  std::vector<LoopLeaf> results_;
  std::vector<RepeatedStack> repeated_stacks_;
  std::size_t record_ = 0;
};

}  // namespace reel
