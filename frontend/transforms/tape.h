// frontend/transforms/tape.h — Tape, for gradients of recorded computations.
#pragma once

#include "reel/autodiff/tape.h"
#include "reel/core/base/visibility.h"
#include "reel/frontend/sparse/embedding_table.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// Returns the gradient with respect to a tensor that the result does not depend on: exact zeros of
/// the tensor's type.
Tensor zero_gradient(const Tensor& source);
/// Returns a cotangent in the form that users get: zeros if it is empty, and for an array as many
/// elements as the source has, even if the last ones have no cotangents.
Tensor whole_gradient(Tensor cotangent, const Tensor& source);

namespace detail {

/// Watches the floating tensors of a tree, and its embedding tables as table rows.
void watch_tree(RecordingTape& tape, const TreeRef& tree);

/// The gradient with respect to the leaves of a tree, and the tables with gradients as rows.
struct LeavesGradient {
  TreeLeaves leaves;
  std::vector<EmbeddingTable> tables;  ///< in the order of the tree; dense: in the leaves
};
LeavesGradient gradient_of_leaves(RecordingTape& tape, const Tensors& targets,
                                  const Tensors& cotangents, const TreeRef& tree);
/// Puts the tables with rows into a tree with the leaves of the gradient.
void put_tables(const TreeSlot& tree, std::vector<EmbeddingTable> tables);

/// Returns the gradient with respect to a tree that watch_tree was given: a tree of its type.
template <class Tree>
Tree gradient_of_tree(RecordingTape& tape, const Tensors& targets, const Tensors& cotangents,
                      const Tree& tree) {
  // Table rows are put in last, because they change the leaves of a table.
  LeavesGradient gradient = gradient_of_leaves(tape, targets, cotangents, TreeRef(tree));
  Tree result = unflatten(tree, gradient.leaves);
  put_tables(TreeSlot(result), std::move(gradient.tables));
  return result;
}

/// Returns the leaves with cotangents in the place of their tensors; zeros for an empty cotangent.
TreeLeaves with_cotangents(const TreeLeaves& leaves, Tensors cotangents);

}  // namespace detail

/// Options of Tape.
struct TapeOptions {
  bool persistent = false;  ///< true: gradient() may be called more than once
};

/// Records all ops on watched tensors during its lifetime. Tapes may be nested, for higher
/// derivatives.
///
///   Tape tape;
///   tape.watch(w);
///   Tensor y = w * w;
///   Tensor dw = tape.gradient(y, w);
///
/// A tape records the body, branch or trace that it is opened in, and not the ones nested inside
/// it. In a nested one it still returns gradients of the ops that it has recorded.
class Tape {
 public:
  explicit Tape(TapeOptions options = {}) : tape_(options.persistent) {}

  /// Watches the floating tensors of this tree, so that gradients with respect to them can be
  /// requested. Throws TraceError for a tensor that was made in a body, branch or trace nested
  /// inside the tape's.
  template <class Tree>
  void watch(const Tree& tree) {
    detail::watch_tree(tape_, detail::TreeRef(tree));
  }
  /// Returns the gradient of sum(y) with respect to a tree: a tree of its type. Integers, booleans,
  /// and leaves that y does not depend on get exact zeros; an EmbeddingTable gets table rows.
  /// cotangent: starts from this cotangent of y instead of ones.
  ///
  /// Throws ArgumentError at the second call unless the tape is persistent or the call is inside
  /// another trace, body or branch. Throws TraceError if y or the tree was made in a trace, body or
  /// branch nested inside the tape's. Also throws TraceError if called outside the one that the
  /// tape was opened in.
  template <class Tree>
  Tree gradient(const Tensor& y, const Tree& tree, const Tensor& cotangent = {}) {
    return detail::gradient_of_tree(tape_, {y}, {cotangent}, tree);
  }

  /// Returns a copy of the tree with cotangents in the place of its tensors; zeros for an empty
  /// cotangent.
  template <class Tree>
  static Tree from(Tensors cotangents, const Tree& tree) {
    return unflatten(tree, detail::with_cotangents(flatten(tree), std::move(cotangents)));
  }

 private:
  RecordingTape tape_;
};

}  // namespace reel
REEL_API_END
