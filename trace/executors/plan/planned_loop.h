// trace/executors/plan/planned_loop.h — PlannedLoop, what is settled about a loop before it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/trace/executors/chunks.h"
#include "reel/trace/executors/plan/sub_plan.h"

namespace reel {

/// A loop for inputs of certain types: the plans of its body and condition, and where carries and
/// sums lie.
struct PlannedLoop {
  /// Children of a loop's profile: those of its own plans, then of each block of rows.
  static constexpr std::size_t kBody = 0, kCond = 1, kEnded = 2, kFirstBlock = 3;

  struct Carry {
    bool is_list = false;
    bool is_updated = false;  ///< few places of it change: it lies where the result will, at once
    std::int64_t bytes = 0, buffers[2] = {};  ///< offsets in memory
    int stack = -1;          ///< the stack that the same value goes to: it is written there only
    int stack_of_next = -1;  ///< the same, of a stack that has it one iteration later
  };

  explicit PlannedLoop(const PlanContext& context)
      : context(context),
        body(context.child(kBody)),
        cond(context.child(kCond)),
        rest(context.child(kBody)),
        ended(context.child(kEnded)) {}

  const LoopAttrs& loop() const { return get<LoopAttrs>(attrs.get()); }

  /// Plans a loop for inputs of these types -> false if types may change from iteration to
  /// iteration, or are not known; `why` says so in words. may_share: whether a carry may lie in a
  /// stack.
  bool make(const AttrsRef& attrs, const std::vector<TensorType>& input_types,
            bool may_share = true, std::string* why = nullptr);

  PlanContext context;
  AttrsRef attrs;
  std::vector<TensorType> input_types;
  Chunks chunks;  ///< of a loop in chunks
  SubPlan body, cond;
  SubPlan rest;                        ///< the body for the last chunk, where that is shorter
  SubPlan ended;                       ///< the body with the dims that ended entries show
  std::vector<std::uint8_t> is_block;  ///< by output of the body
  std::vector<Carry> carries;
  std::vector<std::int64_t> scratch;  ///< by output of the body: offset in memory, of a sum's term
  std::vector<std::uint8_t> shares_carry;  ///< by stack: a carry writes it
  Tensor memory;

  /// The plan of a chunk; of other loops, that of the body.
  const SubPlan& body_at(std::int64_t position) const {
    return loop().in_chunks && chunks.is_rest(position) ? rest : body;
  }

 private:
  bool find_types(std::string* why);
  std::vector<TensorType> body_types(const Dim& chunk) const;
  bool knows_types(const Plan& plan, std::string* why) const;
  void lay_out(bool may_share);
};

}  // namespace reel
