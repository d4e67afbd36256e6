// frontend/sparse_invariants.h — what traces know of the IndexedSlices and SparseTensors in a tree:
// shape invariants of loops, one for each, said of all of its tensors; and how many elements a
// SparseTensor has, which arguments and branches leave to runs. (Rows of IndexedSlices are a size
// like any other, of which an invariant speaks.)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/core/partial_shape.h"
#include "reel/frontend/indexed_slices.h"
#include "reel/frontend/sparse_tensor.h"
#include "reel/frontend/tree.h"

namespace reel::detail {

using Invariants = std::vector<std::optional<PartialShape>>;

/// A leaf of a state, as invariants count them.
struct CountedLeaf {
  enum Kind { tensor, slices, sparse } kind;
  Dim rank = Dim::unknown();  ///< of a SparseTensor: how long its dense_shape is
};

struct CountLeaves {
  std::vector<CountedLeaf>& leaves;
  int inside = 0;  // so many tensors of what was entered are to come
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

/// One invariant per tensor, of those given for the leaves. Throws ArgumentError for another number
/// of them, and for one that cannot be.
Invariants invariants_of_tensors(const std::string& loop, const std::vector<CountedLeaf>& leaves,
                                 const Invariants& given);

/// shape_invariants as loops on leaves take them.
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

/// The leaves that are as long as a SparseTensor has elements: these and their indices.
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

/// The same; a trace forgets how many elements there are.
template <class Tree>
Tree with_any_length(Tree tree) {
  ForgetLengths fn;
  walk<false>(tree, {}, fn);
  return tree;
}

}  // namespace reel::detail
