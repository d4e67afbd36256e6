// frontend/tape.h — Tape, gradients by hand.
#pragma once

#include "reel/autodiff/tape.h"
#include "reel/frontend/embedding_table.h"
#include "reel/frontend/tree.h"

namespace reel {

/// What a gradient with respect to a tensor looks like where there is no path: exact zeros of its
/// type.
Tensor zero_gradient(const Tensor& source);
/// A cotangent as it is given to users: zeros where there is none, an array of as many elements as
/// the source has, where it ended with the last one that anything depends on.
Tensor whole_gradient(Tensor cotangent, const Tensor& source);

namespace detail {

/// Cotangents will be asked for the floating tensors of a tree; for its tables as rows.
template <class Tree>
void watch_tree(RecordingTape& tape, const Tree& tree) {
  for (const Tensor& tensor : tensors_of(flatten(tree)))
    if (tensor.is_defined()) tape.watch(tensor);
  for (const auto& found : tables_of(tree))
    if (found.table->is_dense()) tape.watch_rows(found.table->dense());
}

/// The gradient with respect to a tree that watch_tree was given: a tree of its type.
template <class Tree>
Tree gradient_of_tree(RecordingTape& tape, const Tensors& targets, const Tensors& cotangents,
                      const Tree& tree) {
  const TreeLeaves leaves = flatten(tree);
  const Tensors sources = tensors_of(leaves);
  Tensors numbers;
  Tensors gradient = tape.gradient(targets, cotangents, sources, nullptr, &numbers);
  // Rows are put in afterwards: with them a table has other leaves.
  const auto tables = tables_of(tree);
  std::vector<EmbeddingTable> rows(tables.size());
  for (std::size_t k = 0; k < tables.size(); ++k) {
    const std::size_t i = tables[k].tensors;
    if (!tables[k].table->is_dense() || (gradient[i].is_defined() && !numbers[i].is_defined()))
      continue;
    rows[k] = rows_of_table(gradient[i], numbers[i], sources[i].type());
    gradient[i] = sources[i];
    numbers[i] = Tensor();
  }
  // What is watched as a table may be asked for as a plain tensor, too.
  for (std::size_t i = 0; i < sources.size(); ++i)
    gradient[i] = numbers[i].is_defined()
                      ? whole_of_rows(gradient[i], numbers[i], sources[i].type())
                      : whole_gradient(std::move(gradient[i]), sources[i]);
  Tree result = unflatten(tree, with_tensors(leaves, gradient));
  const auto places = tables_of(result);
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (rows[k].is_sparse()) *places[k].table = std::move(rows[k]);
  return result;
}

}  // namespace detail

struct TapeOptions {
  bool persistent = false;  ///< gradient may be asked more than once
};

/// Records what is done to watched tensors, for as long as it lives; tapes may be nested, for
/// higher derivatives.
///
///   Tape tape;
///   tape.watch(w);
///   Tensor y = w * w;
///   Tensor dw = tape.gradient(y, w);
///
/// A tape records the body, branch or trace that it is opened in, and no other inside of that.
/// There it still gives gradients of what it has recorded.
class Tape {
 public:
  explicit Tape(TapeOptions options = {}) : tape_(options.persistent) {}

  /// Cotangents will be asked for the floating tensors of this tree. Throws TraceError for a tensor
  /// that was made in a body, branch or trace inside that of the tape.
  template <class Tree>
  void watch(const Tree& tree) {
    detail::watch_tree(tape_, tree);
  }
  /// The gradient of the sum of y with respect to a tree: a tree of its type. Integers, booleans
  /// and what y does not depend on get exact zeros; an EmbeddingTable rows. cotangent: what to
  /// start from instead of ones. Throws ArgumentError when asked twice of a tape that is not
  /// persistent, except inside of another trace, body or branch; TraceError for a y or a tree that
  /// was made there, and outside of the trace, body or branch that the tape was opened in.
  template <class Tree>
  Tree gradient(const Tensor& y, const Tree& tree, const Tensor& cotangent = {}) {
    return detail::gradient_of_tree(tape_, {y}, {cotangent}, tree);
  }

  /// Fills cotangents in where tensors stand; an empty one becomes zeros.
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
