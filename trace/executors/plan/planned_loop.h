// trace/executors/plan/planned_loop.h — PlannedLoop, what is settled about a loop before it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/trace/executors/plan/sub_plan.h"

namespace reel {

/// A loop for inputs of certain types: the plans of its body and condition, and where carries and
/// sums lie.
struct PlannedLoop {
  struct Carry {
    bool is_list = false;
    std::int64_t bytes = 0, buffers[2] = {};  ///< offsets in memory
    int stack = -1;          ///< the stack that the same value goes to: it is written there only
    int stack_of_next = -1;  ///< the same, of a stack that has it one iteration later
  };

  const LoopAttrs& loop() const { return get<LoopAttrs>(attrs.get()); }

  /// Plans a loop for inputs of these types -> false if types may change from iteration to
  /// iteration, or are not known. may_share: whether a carry may lie in a stack.
  bool make(const AttrsRef& attrs, const std::vector<TensorType>& input_types,
            bool may_share = true);

  AttrsRef attrs;
  std::vector<TensorType> input_types;
  SubPlan body, cond;
  SubPlan ended;                       ///< the body with the dims that ended entries show
  std::vector<std::uint8_t> is_block;  ///< by output of the body
  std::vector<Carry> carries;
  std::vector<std::int64_t> scratch;       ///< by output of the body: offset in memory
  std::vector<std::uint8_t> shares_carry;  ///< by stack: a carry writes it
  Tensor memory;

 private:
  bool find_types();
  void lay_out(bool may_share);
};

}  // namespace reel
