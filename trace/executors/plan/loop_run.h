// trace/executors/plan/loop_run.h — LoopRun, one run of a planned loop.
#pragma once

#include <optional>
#include <vector>

#include "reel/core/ops/term_sum.h"
#include "reel/core/saved_steps.h"
#include "reel/trace/executors/ended_entries.h"
#include "reel/trace/executors/iterations.h"
#include "reel/trace/executors/plan/block_rows.h"
#include "reel/trace/executors/plan/planned_loop.h"
#include "reel/trace/executors/plan/slices.h"
#include "reel/trace/executors/spilled.h"
#include "reel/trace/executors/stack_list.h"

namespace reel {

/// What a stack of such terms is.
TensorType stacked(const TensorType& term, const Dim& dim);
/// to += term, element by element.
void add_to(const Tensor& to, const Tensor& term);
/// blocks += block, of f32, element by element in f64; makes the blocks of an empty Tensor.
void add_block(Tensor& blocks, const Tensor& block);

/// Carries lie in two buffers in turn, what an iteration stacks is written into its place, slices
/// are read where they lie.
class LoopRun {
 public:
  /// in, out: those of the op. Outputs are written where a tensor is given, else set. rows: of a
  /// block, where they lie; in and out are the block's then.
  LoopRun(PlannedLoop& loop, OpInputs in, std::span<Tensor> out, BlockRows* rows = nullptr);
  void run();

  // The same iteration by iteration, of a loop in chunks, or of a block of rows.
  void start() { put_first_carries(); }
  /// Behind so many iterations, in which others ran the rows; carries are as those left them.
  void skip(std::int64_t iterations) { iterations_.skip(iterations); }
  bool has_next() const { return iterations_.count() < iterations_.limit; }
  void advance();
  void finish();
  /// Steps, in the order in which the loop goes: that have been done, and will have been when the
  /// next chunk has run.
  std::int64_t steps_done() const { return steps_after(iterations_.count()); }
  std::int64_t steps_after_next() const { return steps_after(iterations_.count() + 1); }

 private:
  struct Slices {
    const SavedValue* saved = nullptr;  ///< has steps in memory when it is asked for them
    char* data = nullptr;
    std::int64_t bytes = 0;
    Tensors elements;  ///< of a list
  };
  struct Stack {
    char* data = nullptr;  ///< where its length is known
    std::int64_t bytes = 0;
    std::optional<GrowingStack> growing;
    Ref<Spilled> spilled;
  };

  std::size_t first_sum() const { return attrs_.carries + attrs_.stacks; }
  bool is_list(std::size_t body_output) const {
    return attrs_.body.graph->types[attrs_.body.graph->outputs[body_output]].is_list();
  }
  char* memory(std::int64_t offset) const { return loop_.memory.data<char>() + offset; }
  const TensorType& carry_type(int i) const { return loop_.input_types[attrs_.first_carry() + i]; }

  char* slice_at(int i, std::int64_t position) {
    const Slices& slices = slices_[static_cast<std::size_t>(i)];
    if (slices.saved) return saved_at(*slices.saved, position);
    return rows_ ? rows_->slice(i, position) : slices.data + position * slices.bytes;
  }
  char* stack_at(int j, std::int64_t position) {
    if (rows_) return rows_->stack(j, position);
    Stack& stack = stacks_[static_cast<std::size_t>(j)];
    if (stack.spilled) return spilled_at(j, position);
    return stack.growing ? stack.growing->at(position) : stack.data + position * stack.bytes;
  }

  char* spilled_at(int j, std::int64_t position);
  char* saved_at(const SavedValue& saved, std::int64_t position) const;
  /// How many steps ran before the iteration at a position.
  std::int64_t steps_before(std::int64_t position) const;
  void take_checkpoint();
  void open_file();

  // Before the first iteration.
  /// Of a carry that lies where the result will.
  void begin_with_copy(int i);
  void find_slices(int i);
  void find_stack(int j);
  void set_captures(Plan& plan, const std::vector<int>& captures, std::size_t first);

  // Iterations.
  void put_first_carries();
  /// The plan of a body or condition, for this iteration.
  void set_position(Plan& plan) {
    if (plan.reads_input(0)) place_position(plan);
  }
  void place_position(Plan& plan);
  void run_iteration(Plan& plan);
  Tensor& ask();
  void step(std::int64_t position, const Tensor& live);
  void step_with_all();
  /// Entries that have ended see what Fill says, and what they compute is thrown away.
  ///
  /// Dims that they show are others than those of the body's plan: another plan runs then.
  void step_with_ended(const Tensor& live);
  /// A list is let go of by the instruction that reads it last, so that it can be written in place.
  void set_list_captures(Plan& plan, const std::vector<int>& captures, std::size_t first);
  /// Where iteration `position_` writes carry i: the slice of a stack that it goes to as well, now
  /// or one iteration later, or the buffer that does not hold it now.
  char* next_place(int i);
  void take_carry(int i, Plan& body);
  Tensor saved_list(int i) const;
  void put_elements(int j, const Tensor& made);
  void put_element(int j, std::int64_t position, Tensor element);
  /// Of a checkpoint that an op of the body makes.
  void put_made_checkpoint(int j, const Tensor& term);
  bool is_in_blocks(int i) const { return out_[attrs_.first_sum() + i].dtype() == f32; }
  /// True if the term of sum i in this iteration is what the output holds then: the first of all,
  /// or of a block (TermSum).
  bool is_first_term(int i) const {
    return iterations_.count() == 0 || (begins_block(iterations_.count()) && is_in_blocks(i));
  }
  /// Adds the blocks of terms to those before them, which are kept in f64.
  void end_blocks();
  void add_term(int i, const Tensor& term, bool is_in_place);
  /// A list is written in place while nobody else holds it: the plan must not.
  void release_lists(Plan& body);

  std::int64_t steps_after(std::int64_t chunks) const;

  // What comes of them.
  void finish_stack(int j, const Dim& fresh);
  void finish_sum(int i);
  void give_result(std::size_t k, const Tensor& value);

  PlannedLoop& loop_;
  const LoopAttrs& attrs_;
  OpInputs in_;
  std::span<Tensor> out_;
  BlockRows* rows_;
  Iterations iterations_;
  std::vector<char*> carries_;  ///< where they lie; not those that are lists
  Tensors carried_lists_;
  std::vector<Slices> slices_;
  std::vector<Stack> stacks_;
  std::vector<StackList> lists_;
  CheckpointTimes times_;
  Spills spills_;
  std::vector<TermSum> sums_;  ///< those that are lists
  Tensors wide_;  ///< sums of f32: of the blocks before this one, in f64, if there are any
  Tensor condition_;
  std::optional<EndedEntries> ended_;
  /// Of an iteration in which entries have ended; kept for the next one, so that it allocates less.
  struct EndedStep {
    Tensors before, seen, places, made;
    std::vector<TensorType> types;
  };
  EndedStep ended_step_;
  bool captures_lists_ = false, gives_lists_ = false;
  std::int64_t position_ = 0;           ///< of this iteration
  std::int64_t seen_position_[2] = {};  ///< as the body has it
};

}  // namespace reel
