// frontend/loops/state/fresh_dims.h — FreshDims, new Dims for the Dims that a recorded body makes.
#pragma once

#include "reel/core/dims/dim_changes.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/types/leaf.h"

namespace reel {

/// Replaces Dims that leave a recorded body, by Dims that each run of the body makes anew.
///
/// A Dim of a fixed size is one Dim for all runs of the graph in which it was made. In eager mode,
/// each iteration makes another one. The next iteration may therefore make the Dim again, beside
/// the one that it was given. That is needed only for Dims that the code outside sees as a size of
/// the run: dims of a state, and dims that differ between the branches of a cond.
///
/// A Dim that is computed from Dims of the body is replaced too: a gradient knows its lengths, but
/// not its operands' lengths.
class FreshDims {
 public:
  /// builder: records the body. It must be the innermost one while add() and operator() run.
  explicit FreshDims(const GraphBuilder& builder) : builder_(builder) {}

  /// Adds a new Dim for `dim` if the body made it; also if its lengths run over a Dim that is
  /// replaced.
  void add(const Dim& dim);
  /// Calls add() with the dims of a tensor.
  void add_all(const Tensor& x);
  /// Returns the leaves with the new Dims. Leaves out TensorArrays: their elements keep their type.
  TreeLeaves operator()(TreeLeaves leaves) const;

 private:
  bool is_of_body(const Dim& dim) const;
  Tensor changed(Tensor x) const;

  const GraphBuilder& builder_;
  DimChanges changes_;
};

}  // namespace reel
