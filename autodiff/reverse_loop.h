// autodiff/reverse_loop.h — builds the loop that runs the reversed body over the same iterations,
// in the opposite order.
#pragma once

#include <optional>
#include <vector>

#include "reel/autodiff/saving_loop.h"

namespace reel {

/// A stack or sum of the reverse loop that is the cotangent of an operand of the forward loop.
struct OperandCotangent {
  std::size_t operand;
  /// The index, among the last sums, of the number of iterations with a path; nullopt if each has
  /// one.
  std::optional<std::size_t> presence;
};

/// The reverse loop, and the operands of the forward loop to which its results belong.
struct ReverseLoop {
  LoopAttrs attrs;
  Tensors operands;
  std::vector<OperandCotangent> slices;    ///< by stack; two stacks for each of `tables` follow
  std::vector<OperandCotangent> captures;  ///< by sum; sums for `presence` follow
  /// Captures with rows as cotangents. Two stacks each: lists of the rows and of their numbers.
  std::vector<std::size_t> tables;
};

/// Builds the reverse loop. reversed: the body of `loop`, reversed. saving: the same loop with
/// residuals. Binds ops for its operands, but not the loop itself.
ReverseLoop build_reverse_loop(LoopApplication& loop, const ReversedGraph& reversed,
                               const SavingLoop& saving);

}  // namespace reel
