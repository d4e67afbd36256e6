// trace/executors/plan/loop/loop_run.h — LoopRun: one run of a planned loop.
#pragma once

#include <optional>
#include <vector>

#include "reel/core/ops/list/term_sum.h"
#include "reel/trace/executors/loop/finished_entries.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/plan/loop/block_rows.h"
#include "reel/trace/executors/plan/loop/planned_loop.h"
#include "reel/trace/executors/plan/loop/slice_source.h"
#include "reel/trace/executors/plan/loop/stack_sink.h"

namespace reel {

/// Runs the iterations of a planned loop. Carries alternate between two buffers, each stacked term
/// is written to its final place, and slices are read in place.
class LoopRun {
 public:
  /// in, out: inputs and outputs of the op, or of the row block if `rows` is given. Defined outputs
  /// are written; undefined ones are set.
  /// rows: locates the rows of a row block; null for the whole loop.
  LoopRun(PlannedLoop& loop, OpInputs in, std::span<Tensor> out, BlockRows* rows = nullptr);
  LoopRun(const LoopRun&) = delete;
  LoopRun& operator=(const LoopRun&) = delete;
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
  /// Return the number of time steps done so far, and after the next chunk.
  std::int64_t steps_done() const { return steps_after(iterations_.count()); }
  std::int64_t steps_after_next() const { return steps_after(iterations_.count() + 1); }

 private:
  /// Returns the type of sum i's term in the body.
  const TensorType& formal_sum(std::size_t i) const {
    return attrs_.body.graph->types[attrs_.body.graph->outputs[outputs_.sums[i]]];
  }
  const Tensor& capture(int i) const { return *in_.captures[static_cast<std::size_t>(i)].tensor; }
  /// Returns where this run is counted; null if it is not.
  Profile* profile() const { return loop_.context.profile; }
  char* memory(std::int64_t offset) const { return loop_.memory.data<char>() + offset; }
  const TensorType& carry_type(std::size_t i) const {
    return operands_of(attrs_, loop_.input_types).carries[i];
  }

  char* stack_at(std::size_t j, std::int64_t position) {
    return std::visit(
        [&](auto& stack) -> char* {
          if constexpr (requires { stack.place(position); }) return stack.place(position);
          return nullptr;
        },
        stacks_[j]);
  }
  void put(std::size_t j, const Tensor& term) {
    if (loop_.repeats_states[j] && is_there(j, term)) return;
    std::visit([&](auto& stack) { stack.put(term, position_); }, stacks_[j]);
  }

  /// Returns true if stack j has the elements of the term at this position already.
  bool is_there(std::size_t j, const Tensor& term);

  /// Returns a carry or capture that a checkpoint retains. input: its index among the body's
  /// inputs.
  Tensor body_input(std::size_t input) const;

  // Before the first iteration.
  /// Copies the initial value of a carry that lies in the result.
  void begin_with_copy(std::size_t i);
  void set_captures(Plan& plan, const std::vector<int>& captures,
                    std::span<const std::size_t> inputs);

  // Iterations.
  void put_first_carries();
  /// Sets the position that the body or condition reads in this iteration.
  void set_position(Plan& plan) {
    if (plan.reads_input(0)) place_position(plan);
  }
  bool can_run_series() const;
  std::int64_t iterations_of_series() const;
  void run_series();
  void place_position(Plan& plan);
  void run_iteration(Plan& plan);
  Tensor& eval_condition();
  void step(std::int64_t position, const Tensor& running);
  void step_with_all();
  /// Runs an iteration in which some entries have finished. These read values as fill_of() tells,
  /// and their results are discarded. Replaced dims differ from the dims of the body's plan, so
  /// that another plan runs.
  void step_with_finished(const Tensor& running);
  /// Captures that are lists. The instruction that reads a list last releases it, so that the list
  /// can be written in place.
  void set_list_captures(Plan& plan, const std::vector<int>& captures,
                         std::span<const std::size_t> inputs);
  /// Returns where iteration `position_` writes carry i. This is the slice of a stack that takes
  /// the same value, now or one iteration later; otherwise the buffer that is not in use.
  char* next_place(std::size_t i);
  void take_carry(std::size_t i, Plan& body);
  bool is_in_blocks(std::size_t i) const { return out_.sums[i].dtype() == f32; }
  /// Returns true if the term of sum i in this iteration is stored, not added: the first term of
  /// all, or of a block (TermSum).
  bool is_first_term(std::size_t i) const {
    return iterations_.count() == 0 || (begins_block(iterations_.count()) && is_in_blocks(i));
  }
  /// Adds the finished block of terms to the earlier blocks, in f64.
  void end_blocks();
  void add_term(std::size_t i, const Tensor& term, bool is_in_place);
  bool add_running(std::size_t i, const Tensor& term, const Tensor& running);
  /// Drops the plan's references to lists, as a list is written in place only without other
  /// references.
  void release_lists(Plan& body);

  std::int64_t steps_after(std::int64_t chunks) const;

  // Results.
  void finish_sum(std::size_t i);

  PlannedLoop& loop_;
  const LoopAttrs& attrs_;
  const LoopOperands<const OpInput> in_;
  const LoopResults<Tensor> out_;
  // Numbers of inputs and outputs of the body, and of inputs of the condition, if there is one.
  const BodyInputs<const std::size_t> inputs_;
  const BodyOutputs<const std::size_t> outputs_;
  const std::optional<CondInputs<const std::size_t>> cond_inputs_;
  BlockRows* rows_;
  Iterations iterations_;
  std::vector<char*> carries_;  ///< data of carries; unused for lists
  Tensors carried_lists_;
  const LeafContext leaves_;
  std::vector<SliceSource> slices_;
  std::vector<StackSink> stacks_;
  Spills spills_;
  CheckpointStacks checkpoints_;
  std::vector<TermSum> sums_;  ///< sums that are lists
  Tensors wide_;               ///< sums of f32: the earlier blocks in f64, if there are any
  Tensor condition_;
  std::optional<FinishedEntries> finished_;
  /// Buffers for an iteration in which entries have finished; reused by the next one.
  struct FinishedBuffers {
    Tensors before, seen, places, made;
    std::vector<TensorType> types;
  };
  FinishedBuffers finished_buffers_;
  bool captures_lists_ = false, gives_lists_ = false;
  std::int64_t position_ = 0;           ///< of this iteration
  std::int64_t seen_position_[2] = {};  ///< as the body reads it
};

}  // namespace reel
