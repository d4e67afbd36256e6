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
template <class Tree>
void watch_tree(RecordingTape& tape, const Tree& tree) {
  for (const Tensor& tensor : tensors_of(flatten(tree)))
    if (tensor.is_defined()) tape.watch(tensor);
  for (const auto& found : tables_of(tree))
    if (found.table->is_dense()) tape.watch_rows(found.table->dense());
}

/// Returns the gradient with respect to a tree that watch_tree was given: a tree of its type.
template <class Tree>
Tree gradient_of_tree(RecordingTape& tape, const Tensors& targets, const Tensors& cotangents,
                      const Tree& tree) {
  const TreeLeaves leaves = flatten(tree);
  const Tensors sources = tensors_of(leaves);
  std::vector<TableRows> found;
  Tensors gradient = tape.gradient(targets, cotangents, sources, nullptr, &found);
  // Table rows are put in last, because they change the leaves of a table.
  const auto tables = tables_of(tree);
  std::vector<EmbeddingTable> rows(tables.size());
  for (std::size_t k = 0; k < tables.size(); ++k) {
    const std::size_t i = tables[k].tensors;
    if (!tables[k].table->is_dense() || gradient[i].is_defined()) continue;
    rows[k] = rows_of_table(found[i], sources[i].type());
    found[i] = {};
    gradient[i] = sources[i];
  }
  // A table may also be read whole, or be requested as a plain tensor too.
  for (std::size_t i = 0; i < sources.size(); ++i)
    gradient[i] = with_rows(whole_gradient(std::move(gradient[i]), sources[i]), found[i]);
  Tree result = unflatten(tree, with_tensors(leaves, gradient));
  const auto places = tables_of(result);
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (rows[k].is_sparse()) *places[k].table = std::move(rows[k]);
  return result;
}

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
    detail::watch_tree(tape_, tree);
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
    const TreeLeaves leaves = flatten(tree);
    const Tensors sources = tensors_of(leaves);
    for (std::size_t i = 0; i < sources.size(); ++i)
      cotangents[i] = whole_gradient(std::move(cotangents[i]), sources[i]);
    return unflatten(tree, with_tensors(leaves, cotangents));
  }

 private:
  RecordingTape tape_;
};

}  // namespace reel
REEL_API_END
