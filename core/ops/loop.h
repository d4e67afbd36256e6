// core/ops/loop.h — the one structured loop: while_loop, scan, and every gradient of them are nodes
// of this op.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/block.h"
#include "reel/core/checkpoint_policy.h"
#include "reel/core/errors.h"
#include "reel/core/graph.h"
#include "reel/core/str.h"

namespace reel {

struct LoopNote;  // trace/passes/notes.h

/// What a loop's ended entries see of a carry or a slice while others still run (their results are
/// thrown away).
enum class Fill : std::uint8_t {
  live,  ///< the values of an entry that is live, so that nothing they compute can be NaN or 0/0 on
         ///< their account
  as_is,  ///< what is there: values that an earlier run of the same iterations saved, ended entries
          ///< included; a carry that the body itself keeps as it should be
  zero,   ///< zeros: cotangents, which must not count in sums over entries
  recalled,       ///< of a slice: as is, and of few steps at a time (core/ops/recall.h)
  recalled_live,  ///< the same with the values of a live entry
  recalled_zero,  ///< the same with zeros
};
inline bool is_recalled(Fill fill) { return fill >= Fill::recalled; }
/// The fill of a slice whose steps are all in memory.
inline Fill fill_in_memory(Fill fill) {
  return fill == Fill::recalled        ? Fill::as_is
         : fill == Fill::recalled_live ? Fill::live
         : fill == Fill::recalled_zero ? Fill::zero
                                       : fill;
}

/// The loop of the design: carries, sliced inputs, captures, and outputs of three kinds.
///
/// inputs of the op:   [bound] [lengths] [chunk] carries... slices... captures...
/// inputs of body:     position (i64), carries..., one slice each..., captures (those of
/// body_captures)... outputs of body:    carries..., terms of stacks..., terms of sums... inputs of
/// cond:     trips so far (i64), carries..., captures (those of cond_captures)... outputs of the
/// op:  last value of each carry, stacks, sums, trips (i32), [lengths (i32 over entry_dims)],
/// [token of a new dim]
///
/// A named dim of a carry may be another one when it comes back (a state with a Dim that grows):
/// each iteration binds it anew, and the last value has a new dim.
///
/// Slices and stacks have the dim that the loop runs along in front; a list as slice or stack has
/// one element per iteration, in a loop in chunks one per step. Iteration k works at position k, or
/// in a reverse loop at trips - 1 - k.
///
/// A loop in chunks (trace/passes/chunk_loops.h) takes many steps in an iteration: slices and terms
/// of stacks have the steps of a chunk in front, the chunk at the end has what is left, and the
/// body's position is {the chunk's first step, steps in all} (i64[2]). Such is the input `chunk` of
/// a loop that runs over the steps of a chunk; `lengths` are those of the whole loop there, too.
struct LoopAttrs {
  static constexpr std::uint8_t kList =
      1;  ///< a list with one element per iteration instead of a tensor
  static constexpr std::uint8_t kRaw =
      2;  ///< ended entries as the body gave them, instead of zeros
  static constexpr std::uint8_t kUnread = 4;  ///< with kRaw: nobody reads what ended entries gave
  /// With kList and kRaw: has elements of those steps only before which a checkpoint is taken: a
  /// carry as the body takes it, or (kSteps) how many steps ran before, and how many are done
  /// together: those of a chunk, or 1 (i64[2]).
  static constexpr std::uint8_t kCheckpoint = 8, kSteps = 16;
  /// Has few steps in memory, and the others in a file (SwapMemory).
  static constexpr std::uint8_t kSpilled = 32;
  /// With kList and kRaw: of each step the checkpoints of a loop inside.
  static constexpr std::uint8_t kOfCheckpoints = 64;
  std::string name;     ///< as messages have it: while_loop "decode"
  SubGraph cond, body;  ///< cond may be absent
  std::vector<int> cond_captures,
      body_captures;  ///< which captures of the op each graph takes, in its order
  int carries = 0, slices = 0, stacks = 0, sums = 0;
  bool has_bound = false, has_lengths = false;
  bool is_reverse = false;
  bool counts_down =
      false;  ///< the gradient of a loop: its iterations have the numbers of that one's
  /// while_loop asks the bound, then cond, before every iteration. scan asks cond after every body,
  /// and before the first one if cond_before_body.
  bool is_scan = false, cond_before_body = true;
  /// There are as many iterations as the dim of its slices and stacks is long.
  bool is_full = false;
  bool in_chunks = false;  ///< an iteration takes the steps of a chunk; `is_full` then
  int chunk_steps = 0;     ///< how many; 0: chosen when it is planned
  /// Of one in chunks: another one takes, as its slices, what this stacks, or the other way round,
  /// or layers of it do so inside.
  bool is_handed_on = false;
  /// What a step reads and writes, by which chunks are chosen, where the body does not show it: of
  /// a gradient that under no policy and no rule; of a layer (trace/passes/split_loops.h) that of
  /// the whole loop; around loops core/ops/around_loops.h.
  std::vector<TensorType> whole_step;
  bool has_chunk = false;  ///< positions are counted from the first step of the input `chunk`
  Dims entry_dims;         ///< entries end one by one: the dims of lengths, or of what cond returns
  /// Dims that ended entries see as they are (core/ops/shown_dims.h): those of the elements of
  /// arrays in the state, whichever of these are still carried.
  Dims kept_dims;
  std::vector<Fill> fills;  ///< of carries, slices and captures
  /// By output of the body: what ended entries give joins the first live one, whose values they saw
  /// (cotangents of what was filled that way).
  std::vector<std::uint8_t> collects;
  bool makes_dim = false;  ///< stacks run along a new dim, whose size the loop finds out
  std::string new_dim;     ///< its name; empty for a plain one
  Dims stack_dims;         ///< otherwise: the dim of each stack
  std::vector<std::uint8_t> stack_kinds;  ///< of each stack: kList, kRaw, kUnread
  /// By carry, the dims that it leaves with, where iterations change them and the result is known:
  /// cotangents leave with the dims of what they belong to. Empty for others: those it came with,
  /// and new ones where they change.
  std::vector<Dims> last_dims;
  std::int64_t checkpoint_steps = 0, checkpoint_bytes = 0;  ///< Checkpoint, for its gradient
  bool swaps = false;             ///< SwapMemory: what it keeps for that may lie in a file
  std::string spill_folder;       ///< where
  std::int64_t spill_window = 0;  ///< bytes that stay in memory
  /// Of the dataflow executor, so many are in flight at most. No result depends on it, nor does it
  /// make a loop another one.
  int parallel_iterations = 10;
  std::shared_ptr<const SavingRule> keeps;  ///< what of a step is kept for that; null: by default
  GraphRef
      origin;  ///< the body as it was first recorded; later ones have the same records, and more

  std::shared_ptr<const std::vector<LoopNote>> notes;  ///< what passes did to it, for explain()

  /// Of an input of the body, the position not counted.
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
  /// What the memory of a stack is for.
  MemoryClass memory_of(std::size_t stack) const {
    return stack_kinds[stack] & (kCheckpoint | kOfCheckpoints) ? MemoryClass::checkpoints
           : is_raw(stack)                                     ? MemoryClass::saved
                                                               : MemoryClass::values;
  }
  /// Some slices are had of few steps at a time.
  bool recalls() const {
    const auto first = fills.begin() + carries;
    return std::any_of(first, first + slices, is_recalled);
  }
  bool takes_checkpoints() const {
    return std::any_of(stack_kinds.begin(), stack_kinds.end(),
                       [](std::uint8_t kind) { return kind & kCheckpoint; });
  }
  /// Its gradient is to do with the memory of few steps.
  bool keeps_few_steps() const {
    return std::any_of(stack_kinds.begin(), stack_kinds.end(),
                       [](std::uint8_t kind) { return kind & (kCheckpoint | kSpilled); });
  }
  bool has_checkpoints() const { return checkpoint_steps || checkpoint_bytes; }
  bool is_unread(std::size_t stack) const { return stack_kinds[stack] & kUnread; }
  bool collects_output(std::size_t i) const { return i < collects.size() && collects[i]; }
  std::size_t chunk_input() const { return has_bound + has_lengths; }
  std::size_t first_carry() const { return chunk_input() + has_chunk; }
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
    f("counts_down", &LoopAttrs::counts_down);
    f("is_scan", &LoopAttrs::is_scan);
    f("cond_before_body", &LoopAttrs::cond_before_body);
    f("is_full", &LoopAttrs::is_full);
    f("in_chunks", &LoopAttrs::in_chunks);
    f("chunk_steps", &LoopAttrs::chunk_steps);
    f("is_handed_on", &LoopAttrs::is_handed_on);
    f("whole_step", &LoopAttrs::whole_step);
    f("has_chunk", &LoopAttrs::has_chunk);
    f("entry_dims", &LoopAttrs::entry_dims);
    f("kept_dims", &LoopAttrs::kept_dims);
    f("fills", &LoopAttrs::fills);
    f("collects", &LoopAttrs::collects);
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

/// cond(pred, captures...): runs one of two graphs. Outputs are those of the branches, whose types
/// agree but for dims: where they differ, or are made in the branches, the output has a new one.
struct CondAttrs {
  SubGraph on_true, on_false;
  std::vector<int> true_captures,
      false_captures;  ///< which captures of the op each branch takes, in its order
  template <class F>
  static void fields(F&& f) {
    f("true_captures", &CondAttrs::true_captures);
    f("false_captures", &CondAttrs::false_captures);
    f("on_true", &CondAttrs::on_true);
    f("on_false", &CondAttrs::on_false);
  }
};

extern const Op cond_op;

/// Whether running the record, or anything inside its sub-graphs, does something besides giving its
/// result.
bool has_effects(const OpRecord& record);
bool has_effects(const Graph& graph);

/// Some record is a loop, in branches, too.
bool has_loops(const Graph& graph);

/// Whether an output of the record is a loop's stack that may lie in a file: the loop makes it.
bool is_spilled_output(const OpRecord& record, std::size_t output);
/// Whether it is a loop's stack of checkpoints, or of those of a loop inside.
bool is_checkpoint_output(const OpRecord& record, std::size_t output);

// Each floor gives its part of these ops: running them (trace/executors), and differentiating them
// (autodiff).
void run_loop(KernelArgs& args);
void run_cond(KernelArgs& args);
void loop_vjp(Vjp& at);
void cond_vjp(Vjp& at);

/// The dim that slices of a loop run along; a list has none, which Dim(0) stands for.
inline Dim leading_dim(const TensorType& slices) {
  return slices.is_list() ? Dim(0) : slices.dims()[0];
}

/// Runs a part of a loop. An Error that it throws says in which iteration of which loop that was;
/// while recording, code runs as the first one.
template <class Fn>
auto in_iteration(std::int64_t iteration, const std::string& loop, Fn&& fn) {
  try {
    return fn();
  } catch (Error& error) {
    error.add_line(str("in iteration ", iteration, " of ", loop));
    throw;
  }
}

/// The type of one slice, as the body takes it.
TensorType slice_type(const TensorType& slices);
/// The same of a loop in chunks, for a chunk of such steps: of a list, a list again.
TensorType chunk_type(const TensorType& slices, const Dim& chunk);
/// Of what the body takes as a slice or gives to a stack, the type of one step.
TensorType one_step(const LoopAttrs& attrs, const TensorType& in_body);
/// Of what the body gives to a stack that is a list, the type of an element: one step's, or a
/// checkpoint.
TensorType element_of_stack(const LoopAttrs& attrs, std::size_t stack, const TensorType& in_body);

/// Whether the graph's own records make a dim whose size only a run knows, or one that it is
/// computed from.
bool makes_dim(const Graph& graph, const Dim& dim);

/// Of a loop, the same over some of its steps, for a graph in whose body it is: has_chunk, and what
/// it stacks has the dim `chunk` in front.
LoopAttrs over_chunk(const LoopAttrs& attrs, const Dim& chunk);

/// The dims of the body's carries that are others when they come back.
Dims changing_dims(const LoopAttrs& attrs);
/// Returns, by carry, true if the carry has one of the changing_dims().
std::vector<std::uint8_t> carries_with_changing_dims(const LoopAttrs& attrs);

/// Which slice is the first that is no list: the loop goes along its dim. Nothing where all are.
std::optional<std::size_t> first_dense_slice(const LoopAttrs& attrs,
                                             std::span<const TensorType> inputs);

/// What the dims of a loop's body are called where the loop stands, given the types of the op's
/// inputs.
DimEnv body_env(const LoopAttrs& attrs, std::span<const TensorType> inputs);
/// The same of its condition.
DimEnv cond_env(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// Captures of several graphs in one list without repetition, and where each graph finds its own.
class CaptureList {
 public:
  std::vector<int> add(const Tensors& captured);
  const Tensors& tensors() const { return tensors_; }

 private:
  Tensors tensors_;
};

}  // namespace reel
