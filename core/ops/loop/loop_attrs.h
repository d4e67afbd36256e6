// core/ops/loop/loop_attrs.h — LoopAttrs, the attributes of the op loop: its leaves, and how it
// runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/options/checkpoint_policy.h"
#include "reel/core/types/block.h"

namespace reel {

struct LoopRemark;  // trace/passes/support/remarks.h

/// The values that finished entries read of a leaf while other entries still run. Results of
/// finished entries are discarded.
enum class FinishedFill : std::uint8_t {
  running,  ///< values of a running entry, so that finished entries cannot cause NaN or 0/0; zeros
            ///< in all padding
  as_is,    ///< the stored values: residuals saved by the same iterations, finished entries
            ///< included; or a carry that the body itself keeps valid
  zero,     ///< zeros: cotangents, which must not count in sums over entries
  running_padding,  ///< values of a running entry and its padding, which a pass computed outside of
                    ///< the body, and which readers need: -inf before a maximum, 1 before a product
};

/// Where the time steps of slices or of a stack are.
enum class Residence : std::uint8_t {
  memory,
  recomputed,  ///< slices: a window of steps, recomputed from checkpoints (recompute_op)
  file,        ///< a window of steps in memory, the others in a file (SwapMemory)
};

/// A stack's purpose, which decides on the values of finished entries and on the memory class.
enum class StackRole : std::uint8_t {
  output,    ///< has zeros for finished entries
  residual,  ///< has the values that the body computed for finished entries; as the roles below
  checkpoint_state,   ///< a list of one carry as the body received it, at each checkpoint
  checkpoint_step,    ///< a list of i64[2]: the number of steps before a checkpoint, and of the
                      ///< steps that run together (a chunk's, or 1)
  inner_checkpoints,  ///< a list of the checkpoints of an inner loop, one element per step
};

/// A state of the loop, handed from iteration to iteration.
struct LoopCarry {
  FinishedFill fill = FinishedFill::running;
  /// True if values of finished entries are added to the first running entry, because finished
  /// entries read its values: cotangents of inputs with FinishedFill::running.
  bool adds_finished = false;
  /// The dims behind the loop, if iterations change them and they are known: a cotangent leaves
  /// with the dims of its primal. Empty for other carries, which keep their initial dims, with new
  /// dims for those that change.
  Dims final_dims = {};

  template <class F>
  static void fields(F&& f) {
    f("fill", &LoopCarry::fill);
    f("adds_finished", &LoopCarry::adds_finished);
    f("final_dims", &LoopCarry::final_dims);
  }
};

/// An input with one element per iteration: each reads the element at its position.
struct LoopSlice {
  FinishedFill fill = FinishedFill::running;
  Residence residence = Residence::memory;

  bool is_in_memory() const { return residence == Residence::memory; }
  template <class F>
  static void fields(F&& f) {
    f("fill", &LoopSlice::fill);
    f("residence", &LoopSlice::residence);
  }
};

/// An input that all iterations read.
struct LoopCapture {
  FinishedFill fill = FinishedFill::running;

  template <class F>
  static void fields(F&& f) {
    f("fill", &LoopCapture::fill);
  }
};

/// An output with one element per iteration.
struct LoopStack {
  StackRole role = StackRole::output;
  Residence residence = Residence::memory;
  bool is_list = false;          ///< a list with one element per iteration instead of a tensor
  bool finished_unread = false;  ///< values of finished entries are never read
  bool adds_finished = false;    ///< see LoopCarry
  Dim dim = {};  ///< the dim in front; an empty Dim if the loop makes it (TripCount::makes_dim)

  /// True if the values of finished entries are those that the body computed, instead of zeros.
  bool is_raw() const { return role != StackRole::output; }
  /// True if there are elements only for the steps before which a checkpoint is taken.
  bool is_checkpoint() const {
    return role == StackRole::checkpoint_state || role == StackRole::checkpoint_step;
  }
  bool is_in_file() const { return residence == Residence::file; }
  /// Returns the memory class under which the stack is counted.
  MemoryClass memory_class() const {
    return is_checkpoint() || role == StackRole::inner_checkpoints ? MemoryClass::checkpoints
           : is_raw()                                              ? MemoryClass::saved
                                                                   : MemoryClass::values;
  }
  template <class F>
  static void fields(F&& f) {
    f("role", &LoopStack::role);
    f("residence", &LoopStack::residence);
    f("is_list", &LoopStack::is_list);
    f("finished_unread", &LoopStack::finished_unread);
    f("adds_finished", &LoopStack::adds_finished);
    f("dim", &LoopStack::dim);
  }
};

/// An output that adds up the terms of all iterations.
struct LoopSum {
  bool adds_finished = false;  ///< see LoopCarry

  template <class F>
  static void fields(F&& f) {
    f("adds_finished", &LoopSum::adds_finished);
  }
};

/// The number and order of iterations.
struct TripCount {
  bool has_bound = false, has_lengths = false;  ///< operands of the op
  bool is_reverse = false;                      ///< iteration k works at position trips - 1 - k
  /// while_loop evaluates the bound, then cond, before every iteration. scan evaluates cond after
  /// every body, and before the first one if cond_before_body.
  bool is_scan = false, cond_before_body = true;
  bool is_full = false;      ///< the trip count is the size of the dim of slices and stacks
  bool makes_dim = false;    ///< stacks run along a new dim; the run determines its size
  std::string new_dim = {};  ///< the name of the new dim; empty for a plain dim

  template <class F>
  static void fields(F&& f) {
    f("has_bound", &TripCount::has_bound);
    f("has_lengths", &TripCount::has_lengths);
    f("is_reverse", &TripCount::is_reverse);
    f("is_scan", &TripCount::is_scan);
    f("cond_before_body", &TripCount::cond_before_body);
    f("is_full", &TripCount::is_full);
    f("makes_dim", &TripCount::makes_dim);
    f("new_dim", &TripCount::new_dim);
  }
};

/// Entries that finish one by one.
struct LoopEntries {
  Dims dims = {};  ///< dims of lengths, or of cond's result; empty if all entries finish together
  /// Dims that finished entries read unchanged (core/ops/loop/substitute_dims.h): dims of array
  /// elements in the state, even if some of these arrays are no longer carried.
  Dims kept_dims = {};
  /// True if no op of the body couples entries, as if they are rows of vmap.
  bool are_independent = false;

  template <class F>
  static void fields(F&& f) {
    f("dims", &LoopEntries::dims);
    f("kept_dims", &LoopEntries::kept_dims);
    f("are_independent", &LoopEntries::are_independent);
  }
};

/// Chunks of time steps (trace/passes/loop_structure/chunk_loops.h).
///
/// An iteration of a loop over chunks runs the steps of a chunk. Slices and terms of stacks have
/// these steps in front; the last chunk has the remaining steps. The body's position is then
/// i64[2]: {first step of the chunk, number of all steps}. A loop within a chunk has an operand
/// `chunk` of this form; its `lengths` still belong to the whole loop.
struct LoopChunking {
  bool over_chunks = false;   ///< requires TripCount::is_full
  bool within_chunk = false;  ///< positions count from the first step of the operand `chunk`
  int steps = 0;              ///< steps of a chunk; 0: chosen when the loop is planned
  /// For a loop over chunks: true if it is pipelined with another loop, so that one reads the
  /// stacks of the other as slices. Also true if inner layers are pipelined.
  bool is_pipelined = false;
  /// Types that a step reads and writes, from which `steps` is chosen; empty if the body shows
  /// them. A gradient stores its types without any policy or saving rule. A layer
  /// (trace/passes/loop_structure/split_loops.h) stores the whole loop's types. A loop around loops
  /// stores nested_step_types().
  std::vector<TensorType> cost_types = {};

  template <class F>
  static void fields(F&& f) {
    f("over_chunks", &LoopChunking::over_chunks);
    f("within_chunk", &LoopChunking::within_chunk);
    f("steps", &LoopChunking::steps);
    f("is_pipelined", &LoopChunking::is_pipelined);
    f("cost_types", &LoopChunking::cost_types);
  }
};

/// The user's memory policy for the loop's gradient: Checkpoint and SwapMemory.
struct CheckpointPlan {
  std::int64_t steps = 0, bytes = 0;  ///< between checkpoints; of checkpoints. 0: no checkpoints
  bool swaps = false;                 ///< residuals may lie in a file
  std::string spill_folder = {};      ///< folder of the file
  std::int64_t spill_window = 0;      ///< bytes of residuals that stay in memory
  /// Selects the residuals of a step; null: the default. Not part of the identity, because it
  /// changes no value: if two loops that differ in it alone are merged, the first one's rule holds.
  std::shared_ptr<const SavingRule> rule = {};

  bool has_checkpoints() const { return steps || bytes; }
  template <class F>
  static void fields(F&& f) {
    f("steps", &CheckpointPlan::steps);
    f("bytes", &CheckpointPlan::bytes);
    f("swaps", &CheckpointPlan::swaps);
    f("spill_folder", &CheckpointPlan::spill_folder);
    f("spill_window", &CheckpointPlan::spill_window);
  }
};

/// Data that changes neither results nor the loop's identity: not compared, hashed or printed.
struct LoopDebug {
  GraphRef origin = {};  ///< the body as first recorded; later bodies have its records, and more
  std::shared_ptr<const std::vector<LoopRemark>> remarks = {};  ///< of passes, for explain()
  int parallel_iterations = 10;  ///< in flight at once in the dataflow executor, at most
};

/// Attributes of loop_op: while_loop, scan and all their gradients are records of this op.
///
///   operands of the op: [bound] [lengths] [chunk] carries... slices... captures...
///   inputs of body:     position (i64), carries..., one slice each..., captures of body_captures
///   outputs of body:    carries..., terms of stacks..., terms of sums...
///   inputs of cond:     trip count so far (i64), carries..., captures of cond_captures
///   results of the op:  last value of each carry, stacks, sums, trip count (i32),
///                       [lengths (i32 over entries.dims)], [token of a new dim]
///
/// core/ops/loop/loop_views.h finds the leaves in these lists; LoopBuilder adds and drops them.
///
/// The body may return a carry with another dim in place of a named one, for instance a state with
/// a Dim that grows. Each iteration binds the dim anew, and the last value has a new dim.
///
/// Slices and stacks have the loop's dim in front. A list as slice or stack has one element per
/// iteration; in a loop over chunks, one per step. Iteration k works at position k; in a reverse
/// loop, at trips - 1 - k.
struct LoopAttrs {
  std::string name;     ///< in messages: while_loop "decode"
  SubGraph cond, body;  ///< cond may be absent
  std::vector<int> cond_captures,
      body_captures;  ///< indices of `captures` that each graph takes, in its order
  std::vector<LoopCarry> carries;
  std::vector<LoopSlice> slices;
  std::vector<LoopCapture> captures;
  std::vector<LoopStack> stacks;
  std::vector<LoopSum> sums;
  TripCount trips;
  /// True for the gradient of a loop, false for the gradient of a gradient: messages count
  /// iterations downwards, as the forward loop counts them.
  bool is_gradient_loop = false;
  LoopEntries entries;
  LoopChunking chunking;
  CheckpointPlan policy;
  LoopDebug debug;

  bool has_entries() const { return !entries.dims.empty(); }
  bool makes_lengths() const { return static_cast<bool>(cond) && has_entries(); }
  /// True if some slices have only a window of steps in memory.
  bool has_windows() const {
    return std::any_of(slices.begin(), slices.end(),
                       [](const LoopSlice& slice) { return !slice.is_in_memory(); });
  }
  bool takes_checkpoints() const {
    return std::any_of(stacks.begin(), stacks.end(),
                       [](const LoopStack& stack) { return stack.is_checkpoint(); });
  }
  bool spills() const {
    return std::any_of(stacks.begin(), stacks.end(),
                       [](const LoopStack& stack) { return stack.is_in_file(); });
  }
  /// True if the gradient runs with a window of steps in memory.
  bool keeps_few_steps() const { return takes_checkpoints() || spills(); }

  template <class F>
  static void fields(F&& f) {
    f("name", &LoopAttrs::name);
    f("carries", &LoopAttrs::carries);
    f("slices", &LoopAttrs::slices);
    f("captures", &LoopAttrs::captures);
    f("stacks", &LoopAttrs::stacks);
    f("sums", &LoopAttrs::sums);
    f("trips", &LoopAttrs::trips);
    f("is_gradient_loop", &LoopAttrs::is_gradient_loop);
    f("entries", &LoopAttrs::entries);
    f("chunking", &LoopAttrs::chunking);
    f("policy", &LoopAttrs::policy);
    f("cond_captures", &LoopAttrs::cond_captures);
    f("body_captures", &LoopAttrs::body_captures);
    f("cond", &LoopAttrs::cond);
    f("body", &LoopAttrs::body);
  }
};

}  // namespace reel
