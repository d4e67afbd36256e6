// frontend/loops/state/sparse_invariants.h — shape knowledge about the IndexedSlices and
// SparseTensors in a tree.
//
// A loop's shape invariants have one entry for each of them, which is expanded to its tensors. The
// number of elements of a SparseTensor is known only during a run, for arguments of jit and results
// of branches. (The number of rows of an IndexedSlices is an ordinary size, with an invariant.)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/partial_shape.h"
#include "reel/frontend/sparse/indexed_slices.h"
#include "reel/frontend/sparse/sparse_tensor.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel::detail {

using Invariants = std::vector<std::optional<PartialShape>>;

/// A leaf of a state as shape invariants count them.
struct CountedLeaf {
  enum Kind { tensor, slices, sparse } kind;
  Dim rank = Dim::unknown();  ///< for a SparseTensor, the size of its dense_shape
};

struct CountLeaves {
  std::vector<CountedLeaf>& leaves;
  int inside = 0;  // remaining tensors of the struct that was entered
  template <class Leaf>
  void operator()(const Leaf&, const std::string&) {
    if constexpr (std::is_same_v<Leaf, Tensor> || std::is_same_v<Leaf, TensorArray>) {
      if (inside > 0)
        --inside;
      else
        leaves.push_back({CountedLeaf::tensor});
    }
  }
  void size(std::size_t, const std::string&) {}
  void key(const std::string&, const std::string&) {}
  void enter(const IndexedSlices&) {
    leaves.push_back({CountedLeaf::slices});
    inside = 3;
  }
  void enter(const SparseTensor& sparse) {
    const Tensor& shape = sparse.dense_shape;
    leaves.push_back({CountedLeaf::sparse,
                      shape.is_defined() && shape.rank() == 1 ? shape.dims()[0] : Dim::unknown()});
    inside = 3;
  }
};

/// Returns one invariant per tensor, given those for the leaves. Throws ArgumentError if their
/// number differs, or for an impossible one.
Invariants invariants_of_tensors(const std::string& loop, const std::vector<CountedLeaf>& leaves,
                                 const Invariants& given);

/// Returns shape_invariants in the form of loops on leaves.
template <class State>
Invariants invariants_for(const std::string& loop, const State& state, const Invariants& given) {
  std::vector<CountedLeaf> leaves;
  CountLeaves fn{leaves};
  walk<false>(state, {}, fn);
  return invariants_of_tensors(loop, leaves, given);
}

struct FindLengths {
  std::vector<std::size_t>& found;
  std::size_t leaves = 0;
  template <class Leaf>
  void operator()(const Leaf&, const std::string&) {
    ++leaves;
  }
  void size(std::size_t, const std::string&) { ++leaves; }
  void key(const std::string&, const std::string&) { ++leaves; }
  void enter(const IndexedSlices&) {}
  void enter(const SparseTensor&) { found.insert(found.end(), {leaves, leaves + 1}); }
};

/// Returns the leaves whose first size is a SparseTensor's number of elements: its values and
/// indices.
template <class Tree>
std::vector<std::size_t> leaves_of_any_length(const Tree& tree) {
  std::vector<std::size_t> found;
  FindLengths fn{found};
  walk<false>(tree, {}, fn);
  return found;
}

struct ForgetLengths {
  template <class Leaf>
  void operator()(const Leaf&, const std::string&) {}
  void size(std::size_t, const std::string&) {}
  void key(const std::string&, const std::string&) {}
  void enter(IndexedSlices&) {}
  void enter(SparseTensor& sparse);
};

/// Returns the tree; in a trace, with unknown numbers of elements for its SparseTensors.
template <class Tree>
Tree with_any_length(Tree tree) {
  ForgetLengths fn;
  walk<false>(tree, {}, fn);
  return tree;
}

}  // namespace reel::detail
REEL_API_END
