#include "reel/frontend/loops/state/sparse_invariants.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::detail {
namespace {

/// A leaf of a state as shape invariants count them.
struct CountedLeaf {
  enum Kind { tensor, slices, sparse } kind;
  Dim rank = Dim::unknown();  ///< for a SparseTensor, the size of its dense_shape
};

struct CountInvariants : TreeReader {
  std::vector<CountedLeaf> leaves;
  int inside = 0;  // remaining tensors of the struct that was entered
  void add_tensor() {
    if (inside > 0)
      --inside;
    else
      leaves.push_back({CountedLeaf::tensor});
  }
  void tensor(const Tensor&) override { add_tensor(); }
  void array(const TensorArray&) override { add_tensor(); }
  using TreeReader::part;
  void part(const IndexedSlices&) override {
    leaves.push_back({CountedLeaf::slices});
    inside = 3;
  }
  void part(const SparseTensor& sparse) override {
    const Tensor& shape = sparse.dense_shape;
    leaves.push_back({CountedLeaf::sparse,
                      shape.is_defined() && shape.rank() == 1 ? shape.dims()[0] : Dim::unknown()});
    inside = 3;
  }
};

void forget_length(Tensor& x) {
  if (!x.is_defined() || x.rank() == 0 || x.type().is_named()) return;
  Dims dims = x.dims();
  if (!dims[0].has_size()) return;
  dims[0] = Dim::unknown();
  x = relax_shape(x, dims);
}

struct ForgetLengths : TreeWriter {
  using TreeWriter::part;
  void part(SparseTensor& sparse) override {
    forget_length(sparse.indices);
    forget_length(sparse.values);
  }
};

/// Adds the invariants of values, indices and dense_shape, given one for the values.
void add_slices(Invariants& to, const std::optional<PartialShape>& given) {
  if (!given) return to.insert(to.end(), 3, std::nullopt), void();
  const bool has_rank = given->has_rank() && !given->dims().empty();
  to.push_back(*given);
  to.push_back(PartialShape{has_rank ? given->dims()[0] : Dim::unknown()});
  to.push_back(PartialShape{has_rank ? Dim(given->dims().size()) : Dim::unknown()});
}

/// Adds the invariants of indices, values and dense_shape. The number of elements may always
/// change.
void add_sparse(Invariants& to, const std::optional<PartialShape>& given, const Dim& own,
                const std::string& loop) {
  if (given && given->has_rank() && given->dims().size() != 1)
    throw ArgumentError(str(loop, ": the shape invariant of a SparseTensor is the shape of its ",
                            "dense_shape, a vector, as in PartialShape{2} for matrices; got ",
                            *given));
  const Dim rank = !given ? own : given->has_rank() ? given->dims()[0] : Dim::unknown();
  to.push_back(PartialShape{Dim::unknown(), rank});
  to.push_back(PartialShape{Dim::unknown()});
  to.push_back(PartialShape{rank});
}

}  // namespace

Invariants invariants_for(const std::string& loop, const TreeRef& state, const Invariants& given) {
  CountInvariants count;
  state.read(count);
  const std::vector<CountedLeaf>& leaves = count.leaves;
  const auto is_tensor = [](const CountedLeaf& leaf) { return leaf.kind == CountedLeaf::tensor; };
  if (std::all_of(leaves.begin(), leaves.end(), is_tensor)) return given;
  if (!given.empty() && given.size() != leaves.size())
    throw ArgumentError(str(loop, ": shape_invariants has ", given.size(),
                            " entries, but the state has ", leaves.size(),
                            " tensors, an IndexedSlices or a SparseTensor counted once; give one "
                            "entry for each, std::nullopt for the default"));
  Invariants result;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const std::optional<PartialShape> invariant = given.empty() ? std::nullopt : given[i];
    if (leaves[i].kind == CountedLeaf::slices)
      add_slices(result, invariant);
    else if (leaves[i].kind == CountedLeaf::sparse)
      add_sparse(result, invariant, leaves[i].rank, loop);
    else
      result.push_back(invariant);
  }
  return result;
}

void forget_lengths(const TreeSlot& tree) {
  ForgetLengths forget;
  tree.write(forget);
}

}  // namespace reel::detail
