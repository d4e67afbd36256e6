#include "reel/core/ops/loop/joined_dims.h"

#include <array>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/types/dim_expression.h"

namespace reel {

TensorType JoinedDims::of(const TensorType& yes, const TensorType& no) {
  return yes.with(all(yes.dims(), no.dims()));
}

Dim JoinedDims::of(const Dim& yes, const Dim& no) {
  const bool is_known_outside = !yes.is_symbol() || yes.has_size() || env_.knows(yes);
  if (is_known_outside && yes == no) return env_.knows(yes) ? env_.resolve(yes) : yes;
  const bool are_plain = !yes.is_named() || !no.is_named();
  if (are_plain && !(yes.is_symbol() && no.is_symbol())) return Dim::unknown();
  for (const Joined& known : joined_)
    if (known.yes.node() == yes.node() && known.no.node() == no.node()) return known.dim;
  const Dim dim = are_plain ? Dim::unknown() : join(yes, no);
  joined_.push_back({yes, no, dim});
  return dim;
}

Dims JoinedDims::all(const Dims& yes, const Dims& no) {
  Dims result;
  for (std::size_t i = 0; i < yes.size() && i < no.size(); ++i) result.push_back(of(yes[i], no[i]));
  return result;
}

Dim JoinedDims::join(const Dim& yes, const Dim& no) {
  const DimExpression *a = expression_of(yes), *b = expression_of(no);
  if (a && b && a->operation == b->operation && a->number == b->number &&
      a->operands.size() == b->operands.size())
    return recompute(*a, all(a->operands, b->operands));
  Ref<DimNode> node(new DimNode);
  node->name = yes.name();
  node->kind = yes.is_ragged() ? DimKind::ragged : DimKind::dynamic;
  if (yes.has_size() && no.has_size() && yes.raw_size() == no.raw_size()) {
    node->kind = DimKind::fixed;
    node->size = yes.raw_size();
  }
  node->is_symbol = true;
  node->length_dims = all(yes.length_dims(), no.length_dims());
  const Dim made = Dim::of_node(node);
  join_slices(std::array{yes, no}, made, env_);
  return made;
}

}  // namespace reel
