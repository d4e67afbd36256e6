// trace/executors/plan/loop/planned_loop.h — PlannedLoop: a loop planned for inputs of certain
// types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/plan/base/loop_profile.h"
#include "reel/trace/executors/plan/loop/iteration_series.h"
#include "reel/trace/executors/plan/loop/sub_plan.h"

namespace reel {

/// Returns true if carries have the same dims in all iterations, as far as attributes tell.
bool carries_keep_dims(const LoopAttrs& loop);

/// The plans of a loop's body and condition for inputs of certain types, and the places of its
/// carries and sums.
struct PlannedLoop {
  struct Carry {
    bool is_list = false;
    bool is_updated = false;  ///< few elements change: it lies in the result from the start
    std::int64_t bytes = 0, buffers[2] = {};   ///< offsets in memory
    std::optional<std::size_t> stack;          ///< the carry is written into this stack only
    std::optional<std::size_t> stack_of_next;  ///< the stack that has the value one iteration later
  };

  explicit PlannedLoop(const PlanContext& context)
      : context(context),
        body(context.child(LoopProfile::kBody)),
        cond(context.child(LoopProfile::kCond)),
        rest(context.child(LoopProfile::kBody)),
        finished(context.child(LoopProfile::kFinished)) {}

  const LoopAttrs& loop() const { return get<LoopAttrs>(attrs.get()); }

  /// Sets attributes and types without a plan: all that row blocks need of the whole loop. Requires
  /// try_plan() before a run.
  void bind(const AttrsRef& of, const std::vector<TensorType>& types) {
    attrs = of;
    input_types = types;
  }
  /// Plans a loop for inputs of these types. Returns false, and sets `why` to the reason, if types
  /// may change from iteration to iteration or are unknown.
  ///
  /// may_share: a carry may lie in a stack.
  bool try_plan(const AttrsRef& attrs, const std::vector<TensorType>& input_types,
                bool may_share = true, std::string* why = nullptr);

  /// Returns the bytes of carries and of terms of sums: those of `memory`.
  std::int64_t memory_bytes() const { return memory.is_defined() ? memory.type().bytes() : 0; }
  std::int64_t held_bytes() const {
    return memory_bytes() + body.held_bytes() + cond.held_bytes() + rest.held_bytes() +
           finished.held_bytes();
  }

  PlanContext context;
  AttrsRef attrs;
  std::vector<TensorType> input_types;
  Chunks chunks;  ///< of a chunked loop
  SubPlan body, cond;
  SubPlan rest;      ///< the body for a shorter last chunk
  SubPlan finished;  ///< the body with the dims of iterations in which entries have finished
  std::vector<std::uint8_t> is_block;  ///< by output of the body
  std::vector<Carry> carries;
  std::vector<std::int64_t> scratch;       ///< by sum: offset in memory of its term
  std::vector<std::uint8_t> shares_carry;  ///< by stack: a carry writes it
  /// By stack: true if it holds states that another stack holds too (state_stacks.h). Both may
  /// share memory, so that its elements may be there already.
  std::vector<std::uint8_t> repeats_states;
  std::uint64_t binding = 0;  ///< of a row block: the number of its types in LoopBlocks; 0: none
  Tensor memory;
  std::optional<IterationSeries> series;  ///< nothing if the body is more than one fused op
  /// Returns the number of shares of elements in which threads run the iterations; 1 if there is no
  /// series, or if elements depend on each other.
  int shares_of_series() const;

  // Return the numbers of leaves among the inputs and outputs of a plan. Valid until the next
  // try_plan().
  auto input_numbers() const {
    return body_inputs_of(loop(), first_numbers(loop().body.graph->inputs.size()));
  }
  auto output_numbers() const {
    return body_outputs_of(loop(), first_numbers(loop().body.graph->outputs.size()));
  }
  auto cond_input_numbers() const {
    return cond_inputs_of(loop(), first_numbers(loop().cond.graph->inputs.size()));
  }

  /// Returns the plan of the body; in a chunked loop, the one for the size of the chunk.
  const SubPlan& body_at(std::int64_t position) const {
    return loop().chunking.over_chunks && chunks.is_rest(position) ? rest : body;
  }

 private:
  std::span<const std::size_t> first_numbers(std::size_t count) const {
    return std::span(numbers_).first(count);
  }
  bool find_types(std::string* why);
  bool prepare_body();
  std::vector<TensorType> body_types(const Dim& chunk) const;
  bool knows_types(const Plan& plan, std::string* why) const;
  void lay_out(bool may_share);

  std::vector<std::size_t> numbers_;  ///< 0, 1, 2, ...
  bool is_new_ = true;                ///< not laid out yet for its attributes and types
};

}  // namespace reel
