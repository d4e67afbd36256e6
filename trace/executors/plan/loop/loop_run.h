// trace/executors/plan/loop/loop_run.h — LoopRun: one run of a planned loop.
#pragma once

#include <optional>
#include <vector>

#include "reel/core/ops/list/term_sum.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/trace/executors/checkpoints/stack_list.h"
#include "reel/trace/executors/loop/ended_entries.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/plan/loop/block_rows.h"
#include "reel/trace/executors/plan/loop/growing_stack.h"
#include "reel/trace/executors/plan/loop/planned_loop.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {

/// Returns the type of a stack of terms of type `term` along `dim`.
TensorType stacked(const TensorType& term, const Dim& dim);
/// Computes to += term, element by element.
void add_to(const Tensor& to, const Tensor& term);
/// Computes blocks += block, element by element in f64, for a block of f32. Allocates `blocks` if
/// it is undefined.
void add_block(Tensor& blocks, const Tensor& block);

/// Runs the iterations of a planned loop. Carries alternate between two buffers, each stacked term
/// is written to its final place, and slices are read in place.
class LoopRun {
 public:
  /// in, out: of the op, or of the row block if `rows` is given. Defined outputs are written;
  /// undefined ones are set.
  /// rows: locates the rows of a row block; null for the whole loop.
  LoopRun(PlannedLoop& loop, OpInputs in, std::span<Tensor> out, BlockRows* rows = nullptr);
  /// Runs all iterations and sets the outputs.
  void run();

  // start(), advance() and finish() do the same iteration by iteration, for chunked loops and row
  // blocks.
  void start() { put_first_carries(); }
  /// Continues behind the first `iterations` iterations, which ran elsewhere. Carries are as those
  /// left them.
  void skip(std::int64_t iterations) { iterations_.skip(iterations); }
  bool has_next() const { return iterations_.count() < iterations_.limit; }
  void advance();
  void finish();
  /// Time steps done so far, and after the next chunk, in the order of the loop.
  std::int64_t steps_done() const { return steps_after(iterations_.count()); }
  std::int64_t steps_after_next() const { return steps_after(iterations_.count() + 1); }

 private:
  struct Slices {
    const SavedValue* saved = nullptr;  ///< loads the time steps on request
    char* data = nullptr;
    std::int64_t bytes = 0;
    Tensors elements;  ///< if it is a list
  };
  struct Stack {
    char* data = nullptr;  ///< if its length is known
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
  /// Returns how many time steps ran before the iteration at a position.
  std::int64_t steps_before(std::int64_t position) const;
  void take_checkpoint();
  void open_file();

  // Before the first iteration.
  /// Copies the initial value of a carry that lies in the result.
  void begin_with_copy(int i);
  void bind_slice(int i);
  void find_stack(int j);
  void set_captures(Plan& plan, const std::vector<int>& captures, std::size_t first);

  // Iterations.
  void put_first_carries();
  /// Sets the position that the body or condition reads in this iteration.
  void set_position(Plan& plan) {
    if (plan.reads_input(0)) place_position(plan);
  }
  void place_position(Plan& plan);
  void run_iteration(Plan& plan);
  Tensor& eval_condition();
  void step(std::int64_t position, const Tensor& live);
  void step_with_all();
  /// Runs an iteration in which some entries have finished. These read values as Fill says, and
  /// their results are discarded. Replaced dims differ from the dims of the body's plan, so that
  /// another plan runs.
  void step_with_ended(const Tensor& live);
  /// Captures that are lists. The instruction that reads a list last releases it, so that the list
  /// can be written in place.
  void set_list_captures(Plan& plan, const std::vector<int>& captures, std::size_t first);
  /// Returns where iteration `position_` writes carry i. This is the slice of a stack that takes
  /// the same value, now or one iteration later; otherwise the buffer that is not in use.
  char* next_place(int i);
  void take_carry(int i, Plan& body);
  Tensor saved_list(int i) const;
  void put_elements(int j, const Tensor& made);
  void put_element(int j, std::int64_t position, Tensor element);
  /// Stores a checkpoint that an op of the body makes.
  void put_made_checkpoint(int j, const Tensor& term);
  bool is_in_blocks(int i) const { return out_[attrs_.first_sum() + i].dtype() == f32; }
  /// Returns true if the term of sum i in this iteration is stored, not added: the first term of
  /// all, or of a block (TermSum).
  bool is_first_term(int i) const {
    return iterations_.count() == 0 || (begins_block(iterations_.count()) && is_in_blocks(i));
  }
  /// Adds the finished block of terms to the earlier blocks, in f64.
  void end_blocks();
  void add_term(int i, const Tensor& term, bool is_in_place);
  /// Drops the plan's references to lists, as a list is written in place only without other
  /// references.
  void release_lists(Plan& body);

  std::int64_t steps_after(std::int64_t chunks) const;

  // Results.
  void finish_stack(int j, const Dim& fresh);
  void finish_sum(int i);
  void give_result(std::size_t k, const Tensor& value);

  PlannedLoop& loop_;
  const LoopAttrs& attrs_;
  OpInputs in_;
  std::span<Tensor> out_;
  BlockRows* rows_;
  Iterations iterations_;
  std::vector<char*> carries_;  ///< data of carries; unused for lists
  Tensors carried_lists_;
  std::vector<Slices> slices_;
  std::vector<Stack> stacks_;
  std::vector<StackList> lists_;
  CheckpointTimes times_;
  Spills spills_;
  std::vector<TermSum> sums_;  ///< sums that are lists
  Tensors wide_;               ///< sums of f32: the earlier blocks in f64, if there are any
  Tensor condition_;
  std::optional<EndedEntries> ended_;
  /// Buffers for an iteration in which entries have finished; reused by the next one.
  struct EndedStep {
    Tensors before, seen, places, made;
    std::vector<TensorType> types;
  };
  EndedStep ended_step_;
  bool captures_lists_ = false, gives_lists_ = false;
  std::int64_t position_ = 0;           ///< of this iteration
  std::int64_t seen_position_[2] = {};  ///< as the body reads it
};

}  // namespace reel
