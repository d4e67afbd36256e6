// core/checkpoint_policy.h — Checkpoint and SwapMemory, what of a loop is kept for its gradient,
// and where.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reel/core/tensor_type.h"

namespace reel {

/// What is done about a value of a loop's step that its gradient reads.
enum class Saving : std::uint8_t {
  by_default,  ///< kept, unless it is element-wise from what is kept
  keep,
  recompute,  ///< computed again from what is kept
  spill,      ///< kept as SwapMemory does; in memory, of steps that checkpoints have run again
};

/// A value that an op of a step makes.
struct StepValue {
  std::string_view op;    ///< the op's name: "dot", "tanh"
  std::string_view name;  ///< that checkpoint_name gave it; else empty
  TensorType type;
};
using SavingRule = std::function<Saving(const StepValue&)>;

/// What a loop keeps of its steps for its gradient. By default, of each step all that the gradient
/// reads and cannot have more cheaply. Otherwise the state before some of the steps, the
/// checkpoints: on the way back the steps behind one are run once more. In each mode gradients have
/// the bits of keeping all; but up to rounding in plans, of some large products and under some
/// rules, and of second gradients, which keep all steps (docs/semantics.md, "What equals what").
///
///   scan(Scan{.initial = h, .xs = x, .body = body, .checkpoint = Checkpoint::every(64)});
///
/// Source: Griewank & Walther (2000), "Algorithm 799: revolve", for steps behind a checkpoint;
/// Stumm & Walther (2010), "New algorithms for optimal online checkpointing", for loops whose
/// length nobody knows beforehand, which keep fewer checkpoints the longer they run.
class Checkpoint {
 public:
  /// Keeps all.
  Checkpoint() = default;
  /// A checkpoint every so many steps, at least 1: memory for steps / `steps` states, and for what
  /// `steps` steps save, in a plan that goes back in chunks a chunk besides; each step runs twice.
  static Checkpoint every(std::int64_t steps);
  /// As many checkpoints as fit into so many bytes, at least 1, beside what some steps save:
  /// however long the loop runs, it takes no more, but for one state and what a few steps save, in
  /// a plan what two chunks of steps save: where a step saves a MiB that is far more than a small
  /// budget, and jit's explain() says so. Each run of a loop inside of another one has its own.
  /// Counted is the state at its largest so far, with 16 bytes that say which step it is; a
  /// TensorArray as it was before the first step, since checkpoints share its elements.
  ///
  /// A small budget costs time. Of its half that is for states, n fit, of the other half m steps
  /// (at least one of each). Of T steps, every s-th has a checkpoint at the end, with s the least
  /// power of two for which T / s is at most 3n/4. Where s is not more than m, each step runs
  /// twice; else up to 2 + r times, with r the least number for which C(n/4 + 1 + r, r) >= s / m: r
  /// = 1 where s / m is at most n/4 + 2, but T / 2m where n is 1. saved_values and explain() say
  /// how often that is. An LSTM with states of 16 KiB that saves 48 KiB a step, over 100,000
  /// steps: 2.0 times within 64 MiB, 5.8 within 1 MiB, 35 within 256 KiB, 50,001 within 64 KiB. In
  /// a plan that runs in chunks of steps, T and m count chunks.
  static Checkpoint budget(std::int64_t bytes);

  /// The same, where a rule says what is kept of a step: asked of every value that an op makes,
  /// when the gradient is made. Under checkpoints it is about the steps that are run again.
  ///
  ///   Checkpoint().where([](const StepValue& v) {
  ///     return v.op == "dot" ? Saving::keep : Saving::recompute;
  ///   })
  Checkpoint where(SavingRule rule) const;

  bool keeps_all() const { return !steps_ && !bytes_ && !rule_; }
  const std::shared_ptr<const SavingRule>& rule() const { return rule_; }  ///< null: by default
  std::int64_t steps() const { return steps_; }                            ///< 0: not by steps
  std::int64_t bytes() const { return bytes_; }                            ///< 0: not by bytes

  bool operator==(const Checkpoint&) const = default;

 private:
  std::int64_t steps_ = 0, bytes_ = 0;
  std::shared_ptr<const SavingRule> rule_;
};

/// Where what a loop keeps goes when it is more than so many bytes.
struct Spill {
  /// The file is made there; empty: that of the system for temporary files, TMPDIR or /tmp. A
  /// folder that the system keeps in memory (tmpfs, as /tmp often is) saves none.
  std::string folder = {};
  std::int64_t bytes_in_memory = std::int64_t{64} << 20;
};

/// Whether what a loop keeps for its gradient may leave memory: true, or a Spill. What was kept
/// last stays; the rest is written to a file in blocks of a MiB and more, by a thread of its own,
/// and read ahead on the way back. The file has no name: nothing stays behind, whatever happens.
/// Values are the same; gradients as under a Checkpoint. Of each value some five blocks are in
/// memory at least, in a plan a copy of the chunk of steps that the gradient reads; steps whose
/// sizes differ from the first one's stay there, and arrays of the state. So checkpoints under a
/// budget go to the file only where these blocks and the window take less than the budget does
/// without one: of a state of two tensors and the default window from some 180 MiB on.
///
/// It is for the outermost loop that is recorded. One inside of another one, of a branch or of
/// checkpoint(f) writes nothing: what it saved, the outer loop puts into its file if it swaps
/// itself, and keeps in memory if not; explain() says so. Recorded is all of a trace, and in eager
/// mode what a loop under a Checkpoint or SwapMemory runs. So in eager mode, inside of a loop that
/// has neither, or of a branch outside of any, a loop that swaps writes: each of its runs has a
/// file, a window and a thread of its own, until the gradient is done.
///
/// Loops throw IoError before their first step where the folder takes no file, and where the file
/// cannot be written or read. Throws ArgumentError for a window of less than nothing.
class SwapMemory {
 public:
  SwapMemory() = default;
  /// Of a truth value only: a folder's name or a number of bytes is no Spill.
  template <std::same_as<bool> B>
  SwapMemory(B swaps) {
    if (swaps) spill_.emplace();
  }
  SwapMemory(Spill spill);
  const std::optional<Spill>& spill() const { return spill_; }

 private:
  std::optional<Spill> spill_;
};

}  // namespace reel
