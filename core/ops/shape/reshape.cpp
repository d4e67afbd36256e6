// reshape: the same elements in other axes.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {

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

/// Returns the dims that decide where elements are: dims of size 1 are left out unless a dim of
/// `beside` has lengths over them.
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

/// Returns the cotangent of the reshaped input, without elements that are padding only in the
/// result.
Tensor reshape_cotangent(Vjp& at) {
  const Tensor g = at.cotangent();
  return keeps_padding(at.input_type(0).dims(), g.type()) ? g : mask_padding(g);
}

Tensors reshape_across_iterations(const IterationBatch& at) {
  if (has_unknown_size(at.step_out[0])) return {};
  return {bind(at.op, {at.in[0]},
               make_attrs(ReshapeAttrs{
                   {}, at.with_time(at.step_out[0].dims()), at.attr<ReshapeAttrs>().reads_shape}))};
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
          if (at.attr<ReshapeAttrs>().reads_shape) return reshape_to_input(at);
          at.add(0, reshape_to(reshape_cotangent(at), {{}, at.input_type(0).dims()}));
        },
    .reads_by = reads_shape<ReshapeAttrs>,
    .samples =
        [] {
          const Dims& dims = sample_dims();
          return OpSamples{
              {{{TensorType(f32, {2, 3})}}, make_attrs(ReshapeAttrs{{3, -1}, {}})},
              {{{TensorType(f32, {2, 3})}}, make_attrs(ReshapeAttrs{{3, -1}, {}, true})},
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

void same_elements(KernelArgs& a) { a.alias(0, 0); }
void reshape_to_input(Vjp& at) {
  at.add(0, bind(reshape_like_op, {reshape_cotangent(at), at.input(0)}));
}

Tensor reshape_to(const Tensor& x, ReshapeAttrs attrs) {
  attrs.reads_shape = has_unknown_size(x.type());
  return bind(reshape_op, {x}, make_attrs(std::move(attrs)));
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
    SliceKey key = key_along("reshape", x.dims());
    for (const Dim& of : to) key.dim(of);
    const Tensor here =
        computed_plainly([&] { return resized(*lengths, slices(extents(lengths->dims()))); });
    extents.add(dim, extent_dim({dim}));
    slices.add(extents(dim), slice_of_dim(dim, here, key));
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

}  // namespace reel
