#include "reel/frontend/loops/state/sparse_invariants.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::detail {
namespace {

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

Invariants invariants_of_tensors(const std::string& loop, const std::vector<CountedLeaf>& leaves,
                                 const Invariants& given) {
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

void ForgetLengths::enter(SparseTensor& sparse) {
  for (Tensor* x : {&sparse.indices, &sparse.values}) {
    if (!x->is_defined() || x->rank() == 0 || x->type().is_named()) continue;
    Dims dims = x->dims();
    if (dims[0].has_size()) {
      dims[0] = Dim::unknown();
      *x = relax_shape(*x, dims);
    }
  }
}

}  // namespace reel::detail
