// Ops that arrange the same elements differently: transpose, rename. And the list of this family.
#include "reel/core/ops/shape/shape.h"

#include <algorithm>
#include <numeric>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/merge.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

// ---- transpose ----------------------------------------------------------------------------------

std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    result[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  return result;
}

Tensors transpose_across_iterations(const IterationBatch& at) {
  std::vector<int> order = behind_time(at.attr<TransposeAttrs>().order);
  order.insert(order.begin(), 0);
  return {bind(at.op, {at.in[0]}, make_attrs(TransposeAttrs{std::move(order)}))};
}

}  // namespace

bool keeps_layout(const std::vector<int>& order, const TensorType& x) {
  int last = -1;
  for (int axis : order) {
    if (x.sizes()[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

const Op transpose_op{
    .name = "transpose",
    .type =
        [](TypeArgs& a) {
          const std::vector<int>& order = a.attr<TransposeAttrs>().order;
          const TensorType& x = a.in[0];
          std::vector<int> sorted = order;
          std::sort(sorted.begin(), sorted.end());
          std::vector<int> each(x.dims().size());
          std::iota(each.begin(), each.end(), 0);
          if (sorted != each)
            throw ShapeError(str("transpose: the order [", join(order, ","),
                                 "] does not list each axis of ", x, " once"));
          Dims dims;
          dims.reserve(order.size());
          for (int axis : order) dims.push_back(dim_at(x, axis));
          a.out.push_back(x.with(dims));
        },
    .kernel =
        [](KernelArgs& a) {
          const std::vector<int>& order = a.attr<TransposeAttrs>().order;
          const Tensor& x = a.input(0);
          if (keeps_layout(order, x.type())) {
            a.alias(0, 0);
            return;
          }
          const Tensor& out = a.make();
          const Steps from = steps_of(x.type()), to = steps_of(out.type());
          StridedAxes axes;
          for (std::size_t i = 0; i < order.size(); ++i)
            axes.push_back(
                {out.type().sizes()[i], to[i], from[static_cast<std::size_t>(order[i])]});
          copy_strided(size_of(x.dtype()), axes, out.data<void>(), x.data<void>());
        },
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          const TransposeAttrs& attrs = at.attr<TransposeAttrs>();
          at.add(0,
                 bind(at.op(), {at.cotangent()}, make_attrs(TransposeAttrs{inverse(attrs.order)})));
        },
    .samples =
        [] {
          return OpSamples{
              {{{TensorType(f32, {2, 3})}}, make_attrs(TransposeAttrs{{1, 0}})},
              {{{TensorType(f32, {2, 3, 4})}}, make_attrs(TransposeAttrs{{1, 0, 2}})},
              {{{TensorType(f32, {5, 3, 7})}}, make_attrs(TransposeAttrs{{2, 0, 1}})},
              {{{TensorType(f32, {1, 3, 1})}}, make_attrs(TransposeAttrs{{1, 2, 0}})},
              {{{TensorType(f32, sample_dims())}}, make_attrs(TransposeAttrs{{1, 2, 0}})},
              {{{TensorType(f32)}}, make_attrs(TransposeAttrs{})},
              {{{TensorType(f32, {0, 3})}}, make_attrs(TransposeAttrs{{1, 0}})}};
        },
    .iteration_batching = transpose_across_iterations,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          const std::vector<int>& order = call.attr<TransposeAttrs>().order;
          for (std::size_t i = 0; i < order.size(); ++i) f.in(0, order[i]) = static_cast<int>(i);
        },
    .fails = fails_without_memory,
    .padding = Padding::apart,
    .makes_view =
        [](const OpCall& call) {
          return keeps_layout(call.attr<TransposeAttrs>().order, call.in[0]);
        },
};

// ---- rename -------------------------------------------------------------------------------------

const Op rename_op{
    .name = "rename",
    .type =
        [](TypeArgs& a) {
          const auto& [axis, to] = a.attr<RenameAttrs>();
          const TensorType& x = a.in[0];
          const Dim& from = dim_at(x, axis);
          if (to.is_named() && !(from == to) && contains(x.dims(), to))
            throw ShapeError(str("rename: ", axis_name(x, axis), " cannot be called ", to,
                                 ", which is there already; make a second Dim"));
          const Dim dim = checked_dim("rename", to, from.raw_size(),
                                      [&, axis = axis] { return axis_name(x, axis); });
          a.out.push_back(x.with(with_dim(x.dims(), axis, dim)));
        },
    .kernel = same_elements,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          const int axis = at.attr<RenameAttrs>().axis;
          const Tensor g = without_padding(at.cotangent(), axis);
          const Dim& from = dim_at(at.input_type(0), axis);
          if (is_unknown(from))
            at.add(0,
                   reshape_to(g, {{-1}, {}}));  // a plain axis can get a name only if it is alone
          else
            at.add(0, bind(rename_op, {g}, make_attrs(RenameAttrs{axis, from})));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim other("time", tensor({3, 0}, {dims[0]})), fixed("steps", 3);
          return OpSamples{
              {{{TensorType(f32, {dims[0], dims[2]})}},
               make_attrs(RenameAttrs{1, Dim("other", 2)})},
              {{{TensorType(f32, {3})}}, make_attrs(RenameAttrs{0, fixed})},
              {{{TensorType(f32, {dims[0], fixed})}}, make_attrs(RenameAttrs{1, dims[1]})},
              {{{TensorType(f32, dims)}}, make_attrs(RenameAttrs{1, other})},
              {{{TensorType(f32, {Dim("none", 0)})}},
               make_attrs(RenameAttrs{0, Dim("nothing", 0)})}};
        },
    .iteration_batching = axis_across_iterations<RenameAttrs>,
    .axes = axes_beside_worked<RenameAttrs>,
    .fails = never_fails,
    .padding = Padding::apart,
};

Tensor transposed(const Tensor& x, std::vector<int> order) {
  if (std::is_sorted(order.begin(), order.end())) {
    if (static_cast<int>(order.size()) == x.rank()) return x;
  }
  return bind(transpose_op, {x}, make_attrs(TransposeAttrs{std::move(order)}));
}

Tensor with_axis_first(const Tensor& x, int axis) {
  std::vector<int> order{axis};
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  return transposed(x, std::move(order));
}
Tensor with_first_axis_at(const Tensor& x, int axis) {
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
  return transposed(x, std::move(order));
}

// ---- Public functions ---------------------------------------------------------------------------

Tensor transpose(const Tensor& x, const Axes& order) {
  return transposed(x, order.in(x, "transpose"));
}

Tensor renamed(const Tensor& x, int axis, const Dim& to) {
  return bind(rename_op, {clear_padding(x, axis, to)},
              make_attrs(RenameAttrs{axis, canonical(to)}));
}

Tensor rename(const Tensor& x, const Axis& from, const Dim& to) {
  const int axis = from.in(x, "rename");
  const Dim dim = dim_at(x.type(), axis);
  if (dim == to) return x;
  const Dim named = *changed_dim(dim, to, {&dim, 1}, dim.is_ragged() ? -1 : dim.raw_size(),
                                 [&] { return dim.lengths(); });
  const auto take = [&](const Tensor& of, int axis) { return renamed(of, axis, named); };
  if (!x.type().is_ragged()) return take(x, axis);
  // If both dims are ragged, either may be the longer one in some entry.
  const bool is_ragged = dim.is_ragged() || named.is_ragged();
  const auto key_of = [](const Dim& from, const Dim& to) {
    return key_along("rename", {from}).dim(canonical(to));
  };
  AlongAxis::Options options{.key = [&] { return key_of(dim, named); },
                             .entries = is_ragged ? with_entries_of({dim, named}) : Dims{},
                             .makes_places = is_ragged};
  if (!is_ragged) options.undoes = [&] { return key_of(named, dim); };
  return AlongAxis({dim}, take, options)(x, axis);
}

namespace {
const Op* const kShapeOps[] = {&transpose_op, &reshape_op, &reshape_like_op, &rename_op,
                               &expand_op,    &slice_op,   &unslice_op,      &pad_op,
                               &shift_op,     &reverse_op, &merge_dims_op,   &split_dim_op};
}
std::span<const Op* const> shape_ops() { return kShapeOps; }

}  // namespace reel
