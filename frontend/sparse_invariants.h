// frontend/sparse_invariants.h — shape invariants of loops whose state has IndexedSlices or
// SparseTensors: one for each, said of all of its tensors.
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

}  // namespace reel::detail
