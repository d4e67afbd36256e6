#include "reel/frontend/loops/state/fresh_dims.h"

#include <algorithm>

#include "reel/core/dims/dim_facts.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/functions/creation.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"

namespace reel {

bool FreshDims::is_of_body(const Dim& dim) const {
  if (!expression_of(dim)) return dim.has_size() && builder_.has_made(dim);
  bool result = false;
  for_each_operand(dim, [&](const Dim& of) { result = result || builder_.has_made(of); });
  return result;
}

void FreshDims::add(const Dim& dim) {
  if (!dim.is_symbol() || !dim.is_named() || dim.is_undefined() || changes_.affects(dim)) return;
  const Dims& over = dim.length_dims();
  for (const Dim& of : over) add(of);
  const bool follows =
      std::any_of(over.begin(), over.end(), [&](const Dim& of) { return changes_.affects(of); });
  if (!follows && !is_of_body(dim)) return;
  const Tensor lengths = computed_plainly(
      [&] { return dim.has_size() ? scalar(dim.size(), i64) : changed(dim.lengths()); });
  const Dim made = define_dim(dim.name(), lengths);
  copy_slice(dim, made);
  changes_.add(dim, made);
}

void FreshDims::add_all(const Tensor& x) {
  for (const Dim& dim : x.dims()) add(dim);
}

Tensor FreshDims::changed(Tensor x) const {
  for (int axis = 0; axis < x.rank(); ++axis)
    if (const Dim dim = dim_at(x.type(), axis); changes_.affects(dim))
      x = renamed(x, axis, changes_(dim));
  return x;
}

TreeLeaves FreshDims::operator()(TreeLeaves leaves) const {
  if (changes_.empty()) return leaves;
  for (TreeLeaf& leaf : leaves) {
    if (leaf.kind == TreeLeaf::Kind::dim) leaf.dim = changes_(leaf.dim);
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
        !leaf.tensor.type().is_list())
      leaf.tensor = changed(leaf.tensor);
  }
  return leaves;
}

}  // namespace reel
