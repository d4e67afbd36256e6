// core/options/checkpoint_policy.h — Checkpoint and SwapMemory, the policies for a loop's
// residuals.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// Decision about a value of an iteration that the gradient reads.
enum class Saving : std::uint8_t {
  by_default,  ///< saved, unless it can be computed element-wise from saved values
  keep,        ///< saved
  recompute,   ///< computed again from saved values
  spill,       ///< saved to SwapMemory's file; if iterations run again from checkpoints, in memory
};

/// A value that an op of an iteration makes.
struct StepValue {
  std::string_view op;    ///< the op's name: "dot", "tanh"
  std::string_view name;  ///< given by checkpoint_name; else empty
  TensorType type;        ///< its type
};
/// A rule for Checkpoint::where.
using SavingRule = std::function<Saving(const StepValue&)>;

/// The residuals that a loop saves for its gradient. By default, each iteration saves the values
/// that the gradient reads and that cannot be recomputed more cheaply. Otherwise the loop saves
/// only the state before some of the iterations: these states are the checkpoints. The gradient
/// runs the iterations behind a checkpoint again.
///
/// Ensures: gradients have the bits of saving everything, in each mode. The exceptions are equal up
/// to rounding: in plans, some large products, sums over rows that a plan sorts by length, and some
/// rules; second gradients, for which all iterations are saved (docs/semantics.md, "Equal bits").
///
///   scan(Scan{.initial = h, .xs = x, .body = body, .checkpoint = Checkpoint::every(64)});
///
/// Source: Griewank & Walther (2000), "Algorithm 799: revolve", for the iterations behind a
/// checkpoint; Stumm & Walther (2010), "New algorithms for optimal online checkpointing", for loops
/// of unknown length: the longer they run, the sparser their checkpoints.
class Checkpoint {
 public:
  /// Saves the residuals of all iterations.
  Checkpoint() = default;
  /// Returns a policy with a checkpoint every `steps` iterations. Each iteration runs twice.
  /// Memory: one state for every `steps` iterations, and the residuals of `steps` iterations. A
  /// plan that runs the gradient in chunks needs the residuals of one chunk in addition. Throws
  /// ArgumentError if steps < 1.
  static Checkpoint every(std::int64_t steps);
  /// Returns a policy with as many checkpoints as fit into `bytes`, besides the residuals of some
  /// iterations. Throws ArgumentError if bytes < 1.
  ///
  /// Ensures: memory does not grow with the number of iterations. It exceeds `bytes` by at most one
  /// state and the residuals of a few iterations, in a plan of two chunks. If an iteration has
  /// residuals of 1 MiB, that is far more than a small budget, and jit's explain() says so. Each
  /// run of an inner loop has its own budget. A state counts with its largest size so far, plus 16
  /// bytes for the number of its iteration. A TensorArray counts with its bytes before
  /// the first iteration, because checkpoints share its elements.
  ///
  /// A small budget costs time. One half of the budget holds n states, the other half the residuals
  /// of m iterations; both n and m are at least 1. After T iterations, every s-th has a checkpoint.
  /// Here s is the smallest power of two with T / s <= 3n / 4.
  /// - If s <= m, each iteration runs twice.
  /// - If n = 1, each runs about T / 2m times.
  /// - Otherwise, each runs up to 2 + r times. Here r is the smallest number with
  ///   binomial(n / 4 + 1 + r, r) >= s / m; it is 1 if s / m <= n / 4 + 2.
  ///
  /// saved_values and explain() report how often. For an LSTM with states of 16 KiB and residuals
  /// of 48 KiB per iteration, over 100,000 iterations:
  ///
  ///   budget   64 MiB   1 MiB   256 KiB   64 KiB
  ///   runs        2.0     5.8        35   50,001
  ///
  /// In a plan that runs in chunks, T and m count chunks.
  static Checkpoint budget(std::int64_t bytes);

  /// Returns this policy with a rule that selects the values to save. The rule is called for every
  /// value that an op of the body makes, when the gradient is made. With checkpoints it applies to
  /// iterations that run again. Throws ArgumentError if the rule is empty.
  ///
  ///   Checkpoint().where([](const StepValue& v) {
  ///     return v.op == "dot" ? Saving::keep : Saving::recompute;
  ///   })
  Checkpoint where(SavingRule rule) const;

  /// Returns true for the default policy.
  bool keeps_all() const { return !steps_ && !bytes_ && !rule_; }
  const std::shared_ptr<const SavingRule>& rule() const { return rule_; }  ///< null: by default
  std::int64_t steps() const { return steps_; }                            ///< 0: not by iterations
  std::int64_t bytes() const { return bytes_; }                            ///< 0: not by bytes

  bool operator==(const Checkpoint&) const = default;

 private:
  std::int64_t steps_ = 0, bytes_ = 0;
  std::shared_ptr<const SavingRule> rule_;
};

/// Where residuals go if they exceed `bytes_in_memory`.
struct Spill {
  /// Folder of the file. Empty: the system's folder for temporary files, TMPDIR or /tmp. A folder
  /// that the system keeps in memory (tmpfs, as /tmp often is) saves no memory.
  std::string folder = {};
  std::int64_t bytes_in_memory = std::int64_t{64} << 20;  ///< residuals beyond it go to the file
};

/// Whether residuals of a loop may be swapped to a file: true, or a Spill. The latest residuals
/// stay in memory. A thread writes the others to a file in blocks of at least 1 MiB, and reads them
/// ahead for the gradient. The file has no name, so it never outlives the process. Values do not
/// change; gradients are as under a Checkpoint.
///
/// Memory: at least some five blocks of each value, and in a plan a copy of the chunk that the
/// gradient reads. Iterations with other sizes than the first one stay in memory, and so do arrays
/// of the state. Checkpoints under a budget therefore go to the file only if these blocks
/// and the window take less than the budget alone. With a state of two tensors and the default
/// window, that holds from some 180 MiB on.
///
/// Applies to the outermost recorded loop. A loop inside another loop, a branch or checkpoint(f)
/// writes no file. Its residuals go to the outer loop's file if the outer loop swaps, and otherwise
/// stay in memory; explain() says so. In a trace all loops are recorded. In eager mode, the loops
/// inside a loop under a Checkpoint or SwapMemory are recorded. An eager loop therefore writes its
/// own file if it stands in a loop without such a policy, or in a branch outside all loops. Each of
/// its runs then has its own file, window and thread until the gradient is done.
///
/// Loops throw IoError: before their first iteration if the folder takes no file, and later if the
/// file cannot be written or read. The constructor throws ArgumentError if `bytes_in_memory` is
/// negative.
class SwapMemory {
 public:
  SwapMemory() = default;
  /// Accepts bool only: a folder's name or a number of bytes does not convert to a Spill.
  template <std::same_as<bool> B>
  SwapMemory(B swaps) {
    if (swaps) spill_.emplace();
  }
  SwapMemory(Spill spill);
  /// Returns the file's options; none if residuals stay in memory.
  const std::optional<Spill>& spill() const { return spill_; }

 private:
  std::optional<Spill> spill_;
};

}  // namespace reel
REEL_API_END
