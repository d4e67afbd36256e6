#include "reel/trace/passes/analysis/views.h"

#include <algorithm>

#include "reel/core/ops/products/packed.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {
namespace {

bool is_in(std::span<const Op* const> ops, const Op& op) {
  return std::find(ops.begin(), ops.end(), &op) != ops.end();
}

}  // namespace

bool makes_view(const Op& op, const Attrs* attrs, const TensorType& x, const TensorType& out) {
  if (op.storage != OpStorage::input) return op.storage != OpStorage::own;
  if (is_in(reduction_ops(), op)) return x.numel() == out.numel();
  if (&op == &transpose_op) return keeps_layout(get<TransposeAttrs>(attrs).order, x);
  if (&op == &expand_op) return only_adds_ones(get<ExpandAttrs>(attrs), out);
  // Elements that follow each other along the outermost axis lie side by side.
  const auto is_outermost = [&](int axis) { return view_axis(x, axis).outer == 1; };
  if (&op == &slice_op || &op == &slice_unknown_op)
    return is_outermost(get<SliceAttrs>(attrs).axis);
  if (&op == &split_op) return is_outermost(get<SplitAttrs>(attrs).axis);
  if (&op == &unconcat_op) return is_outermost(get<UnconcatAttrs>(attrs).axis);
  if (is_pack(op)) return !makes_panels(op, attrs, x);
  return true;
}

}  // namespace reel
