// Ops that arrange the same elements differently: transpose, reshape, rename.
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
#include "reel/core/ops/shape/stride.h"
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

// ---- reshape ------------------------------------------------------------------------------------

namespace {

/// Returns plain dims of these sizes for x's elements; a -1 is computed if x's sizes are known.
Dims plain_dims(const std::vector<std::int64_t>& sizes, const TensorType& x) {
  std::int64_t others = 1, open = 0;
  for (std::int64_t size : sizes) {
    if (size < -1)
      throw ShapeError(str("reshape: size ", size, " in [", join(sizes, ","),
                           "]; sizes are not negative, -1 aside"));
    open += size == -1;
    if (size != -1) others = multiply_sizes(others, size, "reshape");
  }
  if (open > 1)
    throw ShapeError(
        str("reshape: [", join(sizes, ","), "] leaves ", open, " sizes open; one may be -1"));
  std::int64_t rest = -1;
  if (open && x.is_known()) {
    if (others == 0 || x.numel() % others)
      throw ShapeError(str("reshape: ", x, " has ", x.numel(), " elements, which [",
                           join(sizes, ","), "] cannot hold: the sizes given make ", others));
    rest = x.numel() / others;
  }
  Dims dims;
  for (std::int64_t size : sizes)
    dims.push_back(size >= 0 ? Dim(size) : rest >= 0 ? Dim(rest) : Dim::unknown());
  return dims;
}

/// Returns the extents of ragged dims for messages: "; time[batch=2] has 3 positions, ...".
std::string longest_entries(const TensorType& type) {
  std::string text;
  for (int axis = 0; axis < type.rank(); ++axis)
    if (const Dim& dim = type.dims()[static_cast<std::size_t>(axis)]; dim.is_ragged())
      text += str("; ", dim, " has ", type.sizes()[static_cast<std::size_t>(axis)],
                  " positions, as its longest entry");
  return text;
}

void check_reshape(const TensorType& from, const TensorType& to) {
  if (from.is_known() && to.is_known() && from.numel() != to.numel())
    throw ShapeError(str("reshape: ", from, " has ", from.numel(), " elements, ", to, " has ",
                         to.numel(), longest_entries(to)));
}

void reshape_type(TypeArgs& a) {
  const ReshapeAttrs& attrs = a.attr<ReshapeAttrs>();
  TensorType out = a.in[0].with(attrs.dims ? *attrs.dims : plain_dims(attrs.sizes, a.in[0]));
  check_reshape(a.in[0], out);
  a.out.push_back(std::move(out));
}

/// Returns the dims without those of one element, which move no others. Dims over which a dim of
/// `beside` has lengths stay.
Dims dims_with_places(const Dims& dims, const Dims& beside) {
  Dims result;
  for (const Dim& dim : dims) {
    const auto runs_over = [&](const Dim& other) { return contains(other.length_dims(), dim); };
    if (!is_static(dim) || dim.size() != 1 || std::ranges::any_of(beside, runs_over))
      result.push_back(dim);
  }
  return result;
}

/// True if padding of `to` lies in the same place in `from`. This holds if the leading dims that
/// both share include all padded dims and their length dims. Dims of one element do not count.
bool keeps_padding(const Dims& from, const TensorType& to) {
  if (!to.is_ragged()) return true;
  Dims all = from;
  all.insert(all.end(), to.dims().begin(), to.dims().end());
  const Dims a = dims_with_places(from, all), b = dims_with_places(to.dims(), all);
  const auto shared = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  for (int i = 0; i < to.rank(); ++i) {
    if (!is_masked(to, i)) continue;
    if (find(b, dim_at(to, i)) >= shared) return false;
    for (const Dim& of : dim_at(to, i).length_dims())
      if (find(b, of) >= shared) return false;
  }
  return true;
}

Tensor reshape_to(const Tensor& x, ReshapeAttrs attrs);

/// Returns the cotangent of the reshaped input, without elements that are padding only in the
/// result.
Tensor reshape_cotangent(Vjp& at) {
  const Tensor g = at.cotangent();
  return keeps_padding(at.input_type(0).dims(), g.type()) ? g : mask_padding(g);
}

Tensors reshape_across_iterations(const IterationBatch& at) {
  return {
      bind(at.op, {at.in[0]}, make_attrs(ReshapeAttrs{{}, at.with_time(at.step_out[0].dims())}))};
}

/// Returns the number of elements before `axis`; -1 if only a run knows it.
std::int64_t size_before(const TensorType& type, int axis) {
  std::int64_t size = 1;
  for (int i = 0; i < axis; ++i) {
    const Dim& dim = type.dims()[static_cast<std::size_t>(i)];
    if (!dim.has_size()) return -1;
    size *= dim.size();
  }
  return size;
}

/// Returns the axis of the result with the same elements at each index as in x; -1 if there is
/// none.
int place_after_reshape(const TensorType& x, int axis, const TensorType& result) {
  const Dim& dim = x.dims()[static_cast<std::size_t>(axis)];
  for (int i = 0; i < result.rank(); ++i) {
    if (!(result.dims()[static_cast<std::size_t>(i)] == dim)) continue;
    const bool is_same_before =
        i == axis && std::equal(x.dims().begin(), x.dims().begin() + axis, result.dims().begin());
    const std::int64_t before = size_before(x, axis);
    if (is_same_before || (before >= 0 && size_before(result, i) == before)) return i;
  }
  return -1;
}

/// True if the sizes of all axes but one are known.
bool knows_other_sizes(const TensorType& type, int axis) {
  for (int i = 0; i < type.rank(); ++i)
    if (i != axis && !type.dims()[static_cast<std::size_t>(i)].has_size()) return false;
  return true;
}

/// A plain axis stays only if the sizes of all others are known: the reshape then takes any number
/// of elements along it.
void reshaped_axes(const OpCall& call, AxisFactors& f) {
  const TensorType &x = call.in[0], &result = call.out[0];
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int place = place_after_reshape(x, axis, result);
    if (place >= 0 && (result.is_named() || knows_other_sizes(result, place)))
      f.in(0, axis) = place;
  }
}

}  // namespace

AttrsRef with_open_axis(const TensorType& result, int axis) {
  if (!knows_other_sizes(result, axis)) return {};
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < result.rank(); ++i)
    sizes.push_back(i == axis ? -1 : result.dims()[static_cast<std::size_t>(i)].size());
  return make_attrs(ReshapeAttrs{std::move(sizes), {}});
}

const Op reshape_op{
    .name = "reshape",
    .type = reshape_type,
    .kernel = same_elements,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          at.add(0, reshape_to(reshape_cotangent(at), {{}, at.input_type(0).dims()}));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          return OpSamples{
              {{{TensorType(f32, {2, 3})}}, make_attrs(ReshapeAttrs{{3, -1}, {}})},
              {{{TensorType(f32, {4})}}, make_attrs(ReshapeAttrs{{2, 1, 2}, {}})},
              {{{TensorType(f32, {2, 3, 4})}}, make_attrs(ReshapeAttrs{{2, 12}, {}})},
              {{{TensorType(f32)}}, make_attrs(ReshapeAttrs{{1}, {}})},
              {{{TensorType(f32, {0, 3})}}, make_attrs(ReshapeAttrs{{0, 5}, {}})},
              {{{TensorType(f32, {6})}}, make_attrs(ReshapeAttrs{{}, Dims{dims[0], dims[1]}})},
              {{{TensorType(f32, {dims[0], dims[1], Dim("gate", 4)})}},
               make_attrs(ReshapeAttrs{{}, Dims{dims[0], dims[1], dims[2], Dim("part", 2)}})}};
        },
    .iteration_batching = reshape_across_iterations,
    .axes = reshaped_axes,
    .fails = never_fails,
};

namespace {

/// Returns g with the dims of x; reads only the shape of x.
const Op reshape_like_op{
    .name = "reshape_like",
    .type =
        [](TypeArgs& a) {
          check_reshape(a.in[0], a.in[1]);
          a.out.push_back(a.in[0].with(a.in[1].dims()));
        },
    .kernel = same_elements,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(reshape_like_op, {at.cotangent(), at.input(0)}));
        },
    .reads = {.inputs = 0b1},
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {2, 3})}, {TensorType(f32, {6}), -2, 2, false}}},
                           {{{TensorType(f32, {0, 3})}, {TensorType(f64, {0}), -2, 2, false}}}};
        },
    .fails = never_fails,
};

}  // namespace

void same_elements(KernelArgs& a) { a.alias(0, 0); }
void same_elements_unknown_vjp(Vjp& at) {
  at.add(0, bind(reshape_like_op, {reshape_cotangent(at), at.input(0)}));
}

namespace {

/// reshape of a tensor with plain sizes that only a run determines.
constinit const Op reshape_unknown_op = same_elements_unknown("reshape_unknown", reshape_type, [] {
  return OpSamples{{{{TensorType(f32, {2, 3})}}, make_attrs(ReshapeAttrs{{3, -1}, {}})}};
});

Tensor reshape_to(const Tensor& x, ReshapeAttrs attrs) {
  const Op& op = has_unknown_size(x.type()) ? reshape_unknown_op : reshape_op;
  return bind(op, {x}, make_attrs(std::move(attrs)));
}

// ---- rename -------------------------------------------------------------------------------------

}  // namespace

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
          if (!from.is_named() && !from.has_size())
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

Tensor reshape(const Tensor& x, const std::vector<std::int64_t>& sizes) {
  check_defined("reshape", x);
  return reshape_to(x.type().is_ragged() ? mask_padding(x) : x, {sizes, {}});
}

namespace {

/// The lengths of a dim of x as the result of reshape has them, or nothing if they stay as they
/// are. The axes behind the dim must be the same in both, so that the axes in front of it hold the
/// same entries.
std::optional<Tensor> reshaped_lengths(const Tensor& x, int axis, const Dims& to) {
  const Dims& from = x.dims();
  const Dim dim = from[static_cast<std::size_t>(axis)];
  const int place = find(to, dim);
  const Dims before(from.begin(), from.begin() + axis), entries(to.begin(), to.begin() + place);
  const auto has_all = [&](const Dims& dims) {
    return std::all_of(dim.length_dims().begin(), dim.length_dims().end(),
                       [&](const Dim& of) { return contains(dims, of); });
  };
  if (before == entries && has_all(before)) return std::nullopt;
  const bool same_behind =
      std::equal(from.begin() + axis, from.end(), to.begin() + place, to.end());
  if (!same_behind || !has_all(before))
    throw ShapeError(str("reshape: ", dim, " of ", x.type(), " has a length in each entry, but ",
                         to, " has other entries there; use transpose, merge_dims, split_dim or ",
                         "pack, which take lengths along, or put the dims that keep their places ",
                         "behind ", dim));
  return computed_plainly([&] {
    return reshape_to(mask_padding(expand(dim.lengths(), before)), {{}, entries});
  });
}

/// Returns x reshaped. Ragged dims get the lengths of their entries.
Tensor reshape_ragged(const Tensor& x, const Dims& to) {
  Tensor result = mask_padding(x);
  DimChanges extents, slices;
  for (int i = 0; i < x.rank(); ++i) {
    const Dim& dim = dim_at(x.type(), i);
    if (!has_its_lengths(x.type(), i) || !contains(to, dim)) continue;
    const auto lengths = reshaped_lengths(x, i, to);
    if (!lengths) continue;
    KeyBytes key = key_along("reshape", x.dims());
    for (const Dim& of : to) key.number(of.serial());
    const Tensor here =
        computed_plainly([&] { return resized(*lengths, slices(extents(lengths->dims()))); });
    extents.add(dim, extent_dim({dim}));
    slices.add(extents(dim), slice_of_dim(dim, here, key.take()));
    result = renamed(result, i, extents(dim));
  }
  result = reshape_to(result, {{}, extents(to)});
  return resized(result, slices(result.dims()));
}

}  // namespace

Tensor reshape(const Tensor& x, const Dims& dims) {
  check_defined("reshape", x);
  const Dims to = canonical(dims);
  if (keeps_padding(to, x.type())) return reshape_to(x, {{}, to});
  return reshape_ragged(x, to);
}

Tensor renamed(const Tensor& x, int axis, const Dim& to) {
  return bind(rename_op, {clear_padding(x, axis, to)},
              make_attrs(RenameAttrs{axis, canonical(to)}));
}

Tensor rename(const Tensor& x, const Axis& from, const Dim& to) {
  const int axis = from.in(x, "rename");
  const Dim dim = dim_at(x.type(), axis);
  if (dim == to) return x;
  const Dim named =
      *changed_dim(dim, to, dim.is_ragged() ? -1 : dim.raw_size(), [&] { return dim.lengths(); });
  const auto take = [&](const Tensor& of, int axis) { return renamed(of, axis, named); };
  if (!x.type().is_ragged()) return take(x, axis);
  // If both dims are ragged, either may be the longer one in some entry.
  const bool is_ragged = dim.is_ragged() || named.is_ragged();
  const auto key_of = [](const Dim& from, const Dim& to) {
    return key_along("rename", {from}).number(canonical(to).serial()).take();
  };
  AlongAxis::Options options{.key = [&] { return key_of(dim, named); },
                             .entries = is_ragged ? with_entries_of({dim, named}) : Dims{},
                             .makes_places = is_ragged};
  if (!is_ragged) options.undoes = [&] { return key_of(named, dim); };
  return AlongAxis({dim}, take, options)(x, axis);
}

namespace {
const Op* const kShapeOps[] = {&transpose_op,
                               &reshape_op,
                               &reshape_like_op,
                               &reshape_unknown_op,
                               &rename_op,
                               &expand_op,
                               &slice_op,
                               &slice_unknown_op,
                               &unslice_op,
                               &pad_op,
                               &shift_op,
                               &reverse_op,
                               &stride_op,
                               &stride_unknown_op,
                               &unstride_op,
                               &merge_dims_op,
                               &split_dim_op,
                               &merge_dims_unknown_op,
                               &split_dim_unknown_op};
}
std::span<const Op* const> shape_ops() { return kShapeOps; }

}  // namespace reel
