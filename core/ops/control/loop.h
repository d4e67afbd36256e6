// core/ops/control/loop.h — the loop op: while_loop, scan and all their gradients are records of
// this op.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph.h"
#include "reel/core/options/checkpoint_policy.h"
#include "reel/core/types/block.h"

namespace reel {

struct LoopRemark;  // trace/passes/support/remarks.h

/// The values that finished entries read of a carry, slice or capture while other entries still
/// run. Results of finished entries are discarded.
enum class Fill : std::uint8_t {
  live,   ///< values of a running entry, so that finished entries cannot cause NaN or 0/0
  as_is,  ///< the stored values: residuals saved by the same iterations, finished entries included;
          ///< or a carry that the body itself keeps valid
  zero,   ///< zeros: cotangents, which must not count in sums over entries
  recomputed,       ///< slices only: as_is, with a few steps in memory at a time
                    ///< (core/ops/control/recompute.h)
  recomputed_live,  ///< slices only: live, with a few steps in memory at a time
  recomputed_zero,  ///< slices only: zero, with a few steps in memory at a time
};
inline bool is_recomputed(Fill fill) { return fill >= Fill::recomputed; }
/// Returns the fill of the same slice if all its steps are in memory.
inline Fill fill_in_memory(Fill fill) {
  return fill == Fill::recomputed        ? Fill::as_is
         : fill == Fill::recomputed_live ? Fill::live
         : fill == Fill::recomputed_zero ? Fill::zero
                                         : fill;
}

/// Attributes of loop_op: carries, slices and captures in; carries, stacks and sums out.
///
///   inputs of the op:   [bound] [lengths] [chunk] carries... slices... captures...
///   inputs of body:     position (i64), carries..., one slice each..., captures of body_captures
///   outputs of body:    carries..., terms of stacks..., terms of sums...
///   inputs of cond:     trip count so far (i64), carries..., captures of cond_captures
///   outputs of the op:  last value of each carry, stacks, sums, trip count (i32),
///                       [lengths (i32 over entry_dims)], [token of a new dim]
///
/// The body may return a carry with another dim in place of a named one, for instance a state with
/// a Dim that grows. Each iteration binds the dim anew, and the last value has a new dim.
///
/// Slices and stacks have the loop's dim in front. A list as slice or stack has one element per
/// iteration; in a loop in chunks, one per step. Iteration k works at position k; in a reverse
/// loop, at trips - 1 - k.
///
/// An iteration of a loop in chunks (trace/passes/loop_structure/chunk_loops.h) runs many steps.
/// Slices and terms of stacks have the steps of the chunk in front, and the last chunk has the
/// remaining steps. The body's position is then i64[2]: {first step of the chunk, number of all
/// steps}. The input `chunk` of a loop over the steps of one chunk has the same form. Its `lengths`
/// still belong to the whole loop.
struct LoopAttrs {
  static constexpr std::uint8_t kList =
      1;  ///< a list with one element per iteration instead of a tensor
  static constexpr std::uint8_t kRaw =
      2;  ///< has finished entries as the body returned them, instead of zeros
  static constexpr std::uint8_t kUnread =
      4;  ///< with kRaw: values of finished entries are never read
  /// With kList and kRaw: has elements only for the steps before which a checkpoint is taken.
  /// kCheckpoint: a carry as the body receives it. kSteps: i64[2], the number of steps before, and
  /// the number of steps run together (a chunk's, or 1).
  static constexpr std::uint8_t kCheckpoint = 8, kSteps = 16;
  /// Has a few steps in memory and the others in a file (SwapMemory).
  static constexpr std::uint8_t kSpilled = 32;
  /// With kList and kRaw: has the checkpoints of an inner loop, one element per step.
  static constexpr std::uint8_t kOfCheckpoints = 64;
  std::string name;     ///< in messages: while_loop "decode"
  SubGraph cond, body;  ///< cond may be absent
  std::vector<int> cond_captures,
      body_captures;  ///< indices of the op's captures that each graph takes, in its order
  int carries = 0, slices = 0, stacks = 0, sums = 0;
  bool has_bound = false, has_lengths = false;
  bool is_reverse = false;
  bool is_gradient_loop = false;  ///< gradient loops: messages count iterations downwards, as the
                                  ///< forward loop counts them
  /// while_loop evaluates the bound, then cond, before every iteration. scan evaluates cond after
  /// every body, and before the first one if cond_before_body.
  bool is_scan = false, cond_before_body = true;
  /// The trip count is the size of the dim of its slices and stacks.
  bool is_full = false;
  bool over_chunks = false;  ///< an iteration runs the steps of a chunk; requires `is_full`
  int chunk_steps = 0;       ///< steps of a chunk; 0: chosen when the loop is planned
  /// For a loop in chunks: true if it is pipelined with another loop, so that one reads the stacks
  /// of the other as slices. Also true if inner layers are pipelined.
  bool is_pipelined = false;
  /// Types that a step reads and writes, from which the chunk size is chosen; empty if the body
  /// shows them. A gradient stores its types without any policy or saving rule. A layer
  /// (trace/passes/loop_structure/split_loops.h) stores the whole loop's types. A loop around loops
  /// stores nested_step_types().
  std::vector<TensorType> chunk_cost_types;
  bool within_chunk = false;  ///< positions count from the first step of the input `chunk`
  Dims entry_dims;  ///< if entries finish one by one: dims of lengths, or of cond's result
  /// Dims that finished entries read unchanged (core/ops/control/substitute_dims.h): dims of array
  /// elements in the state, even if some of these arrays are no longer carried.
  Dims kept_dims;
  std::vector<Fill> fills;  ///< one for each carry, slice and capture
  /// One flag for each output of the body. If set, values of finished entries are added to the
  /// first running entry, because finished entries read its values. Set for cotangents of inputs
  /// filled with Fill::live.
  std::vector<std::uint8_t> adds_finished_to_running;
  bool makes_dim = false;  ///< stacks run along a new dim; the run determines its size
  std::string new_dim;     ///< its name; empty for a plain dim
  Dims stack_dims;         ///< otherwise: the dim of each stack
  std::vector<std::uint8_t> stack_kinds;  ///< flags of each stack: kList, kRaw, ...
  /// By carry, its final dims, if iterations change them and the result is known: a cotangent
  /// leaves with the dims of its primal. Empty for other carries, which keep their initial dims,
  /// with new dims for those that change.
  std::vector<Dims> last_dims;
  std::int64_t checkpoint_steps = 0, checkpoint_bytes = 0;  ///< Checkpoint policy, for the gradient
  bool swaps = false;             ///< SwapMemory: residuals may lie in a file
  std::string spill_folder;       ///< folder of the file
  std::int64_t spill_window = 0;  ///< bytes of residuals that stay in memory
  /// Maximum number of iterations in flight in the dataflow executor. It changes neither results
  /// nor the loop's identity.
  int parallel_iterations = 10;
  std::shared_ptr<const SavingRule>
      keeps;        ///< which values of a step are saved for the gradient; null: the default
  GraphRef origin;  ///< the body as first recorded; later bodies have its records, and more

  std::shared_ptr<const std::vector<LoopRemark>> remarks;  ///< remarks of passes, for explain()

  /// Returns the fill of an input of the body. Inputs are counted without the position.
  Fill fill_of(std::size_t input) const {
    const std::size_t own = static_cast<std::size_t>(carries + slices);
    return fills[input < own ? input : own + static_cast<std::size_t>(body_captures[input - own])];
  }
  bool makes_lengths() const { return static_cast<bool>(cond) && !entry_dims.empty(); }

  bool is_list(std::size_t stack) const { return stack_kinds[stack] & kList; }
  bool is_raw(std::size_t stack) const { return stack_kinds[stack] & kRaw; }
  bool is_checkpoint(std::size_t stack) const { return stack_kinds[stack] & kCheckpoint; }
  bool is_spilled(std::size_t stack) const { return stack_kinds[stack] & kSpilled; }
  bool is_steps(std::size_t stack) const { return stack_kinds[stack] & kSteps; }
  /// Returns the memory class under which a stack is counted.
  MemoryClass memory_of(std::size_t stack) const {
    return stack_kinds[stack] & (kCheckpoint | kOfCheckpoints) ? MemoryClass::checkpoints
           : is_raw(stack)                                     ? MemoryClass::saved
                                                               : MemoryClass::values;
  }
  /// True if some slices have only a few steps in memory at a time.
  bool recomputes() const {
    const auto first = fills.begin() + carries;
    return std::any_of(first, first + slices, is_recomputed);
  }
  bool takes_checkpoints() const {
    return std::any_of(stack_kinds.begin(), stack_kinds.end(),
                       [](std::uint8_t kind) { return kind & kCheckpoint; });
  }
  /// True if the gradient runs with few steps in memory.
  bool keeps_few_steps() const {
    return std::any_of(stack_kinds.begin(), stack_kinds.end(),
                       [](std::uint8_t kind) { return kind & (kCheckpoint | kSpilled); });
  }
  bool has_checkpoints() const { return checkpoint_steps || checkpoint_bytes; }
  bool is_unread(std::size_t stack) const { return stack_kinds[stack] & kUnread; }
  bool output_adds_finished(std::size_t i) const {
    return i < adds_finished_to_running.size() && adds_finished_to_running[i];
  }
  std::size_t chunk_input() const { return has_bound + has_lengths; }
  std::size_t first_carry() const { return chunk_input() + within_chunk; }
  std::size_t first_slice() const { return first_carry() + carries; }
  std::size_t first_capture() const { return first_slice() + slices; }
  std::size_t first_stack() const { return carries; }
  std::size_t first_sum() const { return first_stack() + stacks; }
  std::size_t trips_output() const { return first_sum() + sums; }
  std::size_t lengths_output() const { return trips_output() + 1; }
  std::size_t token_output() const { return trips_output() + 1 + makes_lengths(); }

  template <class F>
  static void fields(F&& f) {
    f("name", &LoopAttrs::name);
    f("carries", &LoopAttrs::carries);
    f("slices", &LoopAttrs::slices);
    f("stacks", &LoopAttrs::stacks);
    f("sums", &LoopAttrs::sums);
    f("has_bound", &LoopAttrs::has_bound);
    f("has_lengths", &LoopAttrs::has_lengths);
    f("is_reverse", &LoopAttrs::is_reverse);
    f("is_gradient_loop", &LoopAttrs::is_gradient_loop);
    f("is_scan", &LoopAttrs::is_scan);
    f("cond_before_body", &LoopAttrs::cond_before_body);
    f("is_full", &LoopAttrs::is_full);
    f("over_chunks", &LoopAttrs::over_chunks);
    f("chunk_steps", &LoopAttrs::chunk_steps);
    f("is_pipelined", &LoopAttrs::is_pipelined);
    f("chunk_cost_types", &LoopAttrs::chunk_cost_types);
    f("within_chunk", &LoopAttrs::within_chunk);
    f("entry_dims", &LoopAttrs::entry_dims);
    f("kept_dims", &LoopAttrs::kept_dims);
    f("fills", &LoopAttrs::fills);
    f("adds_finished_to_running", &LoopAttrs::adds_finished_to_running);
    f("makes_dim", &LoopAttrs::makes_dim);
    f("new_dim", &LoopAttrs::new_dim);
    f("stack_dims", &LoopAttrs::stack_dims);
    f("stack_kinds", &LoopAttrs::stack_kinds);
    f("last_dims", &LoopAttrs::last_dims);
    f("checkpoint_steps", &LoopAttrs::checkpoint_steps);
    f("checkpoint_bytes", &LoopAttrs::checkpoint_bytes);
    f("swaps", &LoopAttrs::swaps);
    f("spill_folder", &LoopAttrs::spill_folder);
    f("spill_window", &LoopAttrs::spill_window);
    f("cond_captures", &LoopAttrs::cond_captures);
    f("body_captures", &LoopAttrs::body_captures);
    f("cond", &LoopAttrs::cond);
    f("body", &LoopAttrs::body);
  }
};

extern const Op loop_op;

/// cond(pred, captures...): runs one of two graphs and returns its outputs. Types of both branches
/// must agree except for dims. If dims differ, or are made in the branches, the output has a new
/// dim.
struct CondAttrs {
  SubGraph on_true, on_false;
  std::vector<int> true_captures,
      false_captures;  ///< indices of the op's captures that each branch takes, in its order
  template <class F>
  static void fields(F&& f) {
    f("true_captures", &CondAttrs::true_captures);
    f("false_captures", &CondAttrs::false_captures);
    f("on_true", &CondAttrs::on_true);
    f("on_false", &CondAttrs::on_false);
  }
};

extern const Op cond_op;

/// True if running the record, or a record inside its sub-graphs, has an effect besides its
/// outputs.
bool has_effects(const OpRecord& record);
bool has_effects(const Graph& graph);

/// True if some record is a loop; looks into branches too.
bool has_loops(const Graph& graph);

/// True if the output is a loop's stack that may lie in a file. The loop then creates the storage.
bool is_spilled_output(const OpRecord& record, std::size_t output);
/// True if the output is a loop's stack of checkpoints, or of the checkpoints of an inner loop.
bool is_checkpoint_output(const OpRecord& record, std::size_t output);

// Implemented by other folders: running (trace/executors) and differentiating (autodiff).
void run_loop(KernelArgs& args);
void run_cond(KernelArgs& args);
void loop_vjp(Vjp& at);
void cond_vjp(Vjp& at);

/// Returns the dim along which slices of a loop run. Lists have none: returns Dim(0).
inline Dim leading_dim(const TensorType& slices) {
  return slices.is_list() ? Dim(0) : slices.dims()[0];
}

/// Runs fn, a part of a loop. An Error that it throws gets a line naming the iteration and the
/// loop; while recording, code runs as the first iteration.
template <class Fn>
auto in_iteration(std::int64_t iteration, const std::string& loop, Fn&& fn) {
  try {
    return fn();
  } catch (Error& error) {
    error.add_line(str("in iteration ", iteration, " of ", loop));
    throw;
  }
}

/// Returns the type of one slice, as the body takes it.
TensorType slice_type(const TensorType& slices);
/// Returns the type of the slices of one chunk, with the dim `chunk` in front; a list stays a list.
TensorType chunk_type(const TensorType& slices, const Dim& chunk);
/// Returns the type of one step, given the type of a slice or of a stack's term in the body.
TensorType remove_chunk_dim(const LoopAttrs& attrs, const TensorType& in_body);
/// Returns the element type of a stack that is a list, one step or one checkpoint, given the type
/// of the body's term.
TensorType element_of_stack(const LoopAttrs& attrs, std::size_t stack, const TensorType& in_body);

/// True if the graph's own records make `dim`, or a dim that it is computed from, and only a run
/// determines its size.
bool makes_dim(const Graph& graph, const Dim& dim);

/// Returns the attributes of the same loop over some of its steps, for the body of an enclosing
/// graph. Sets within_chunk and puts the dim `chunk` in front of its stacks.
LoopAttrs make_chunk_loop(const LoopAttrs& attrs, const Dim& chunk);

/// Returns the dims of the body's carries that iterations change.
Dims changing_dims(const LoopAttrs& attrs);
/// Returns, by carry, true if the carry has one of the changing_dims().
std::vector<std::uint8_t> carries_with_changing_dims(const LoopAttrs& attrs);

/// Returns the index of the first slice that is no list; the loop runs along its dim. Returns
/// nullopt if all slices are lists.
std::optional<std::size_t> first_dense_slice(const LoopAttrs& attrs,
                                             std::span<const TensorType> inputs);

/// Returns the dims outside the loop for the dims of its body. inputs: types of the op's inputs.
DimEnv body_env(const LoopAttrs& attrs, std::span<const TensorType> inputs);
/// Returns the dims outside the loop for the dims of its condition.
DimEnv cond_env(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// Merges the captures of several graphs into one list without repetition. add() returns the
/// indices in the list of a graph's captures.
class CaptureList {
 public:
  std::vector<int> add(const Tensors& captured);
  const Tensors& tensors() const { return tensors_; }

 private:
  Tensors tensors_;
};

}  // namespace reel
