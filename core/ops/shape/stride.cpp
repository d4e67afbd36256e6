// Ops that take every step-th element of an axis, and functions built on them and slice: slice with
// a step, shift.
#include "reel/core/ops/shape/stride.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

std::int64_t count_of(std::int64_t size, std::int64_t step) {
  return size / step + (size % step != 0);
}

void stride_type(TypeArgs& a) {
  const int axis = a.attr<StrideAttrs>().axis;
  const std::int64_t step = a.attr<StrideAttrs>().step;
  const std::optional<Dim>& to = a.attr<StrideAttrs>().to;
  const TensorType& x = a.in[0];
  const Dim& from = dim_at(x, axis);
  const Dim dim = checked_dim("slice", to, from.has_size() ? count_of(from.size(), step) : -1, [&] {
    return str("every element ", step, " of ", axis_name(x, axis));
  });
  a.out.push_back(as_function("slice", [&] { return x.with(with_dim(x.dims(), axis, dim)); }));
}

/// Copies rows between `some`, the shorter side, and every step-th row of `all`.
void copy_rows(std::size_t item, const AxisView& some, const AxisView& all, std::int64_t step,
               bool spreads, void* to, const void* from) {
  const std::int64_t inner = some.inner, short_block = some.size * inner,
                     long_block = all.size * inner;
  step = std::min(step, all.size);  // for a single row a larger step would only overflow
  if (spreads)
    copy_strided(
        item,
        {{some.outer, long_block, short_block}, {some.size, step * inner, inner}, {inner, 1, 1}},
        to, from);
  else
    copy_strided(
        item,
        {{some.outer, short_block, long_block}, {some.size, inner, step * inner}, {inner, 1, 1}},
        to, from);
}

void stride_kernel(KernelArgs& a) {
  const StrideAttrs& attrs = a.attr<StrideAttrs>();
  const Tensor& x = a.input(0);
  const Tensor& out = a.make();
  copy_rows(size_of(x.dtype()), view_axis(out.type(), attrs.axis), view_axis(x.type(), attrs.axis),
            attrs.step, false, out.data<void>(), x.data<void>());
}

Tensor stride_positions(const Tensor& x, StrideAttrs attrs) {
  return bind(has_unknown_size(x.type()) ? stride_unknown_op : stride_op, {x},
              make_attrs(std::move(attrs)));
}

}  // namespace

const Op stride_op{
    .name = "stride",
    .type = stride_type,
    .kernel = stride_kernel,
    .vjp =
        [](Vjp& at) {
          const auto& [axis, step, to] = at.attr<StrideAttrs>();
          const Tensor g = without_padding(at.cotangent(), axis);
          at.add(0, bind(unstride_op, {g},
                         make_attrs(StrideAttrs{axis, step, dim_at(at.input_type(0), axis)})));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim fewer("time", tensor({2, 1}, {dims[0]})), one("one", 1);
          return OpSamples{{{{TensorType(f32, {5, 2})}}, make_attrs(StrideAttrs{0, 2, {}})},
                           {{{TensorType(f32, {2, 6, 2})}}, make_attrs(StrideAttrs{1, 3, {}})},
                           {{{TensorType(f32, {2, 2})}}, make_attrs(StrideAttrs{1, 7, {}})},
                           {{{TensorType(f32, {0, 2})}}, make_attrs(StrideAttrs{0, 2, {}})},
                           {{{TensorType(f32, dims)}}, make_attrs(StrideAttrs{1, 2, fewer})},
                           {{{TensorType(f32, dims)}}, make_attrs(StrideAttrs{0, 2, one})}};
        },
    .iteration_batching = axis_across_iterations<StrideAttrs>,
    .axes = axes_beside_worked<StrideAttrs>,
    .fails = fails_without_memory,
};

const Op stride_unknown_op{
    .name = "stride_unknown",
    .type = stride_type,
    .kernel = stride_kernel,
    .vjp =
        [](Vjp& at) {
          const auto& [axis, step, to] = at.attr<StrideAttrs>();
          at.add(0, bind(unstride_op, {at.cotangent(), at.input(0)},
                         make_attrs(StrideAttrs{axis, step, {}})));
        },
    .reads = {.inputs = 0b1},
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {5, 2})}}, make_attrs(StrideAttrs{0, 2, {}})}};
        },
    .iteration_batching = axis_across_iterations<StrideAttrs>,
    .axes = axes_beside_worked<StrideAttrs>,
    .fails = fails_without_memory,
};

const Op unstride_op{
    .name = "unstride",
    .type =
        [](TypeArgs& a) {
          const auto& [axis, step, dim] = a.attr<StrideAttrs>();
          const TensorType& x = a.in[0];
          const Dim &from = dim_at(x, axis), &to = dim ? *dim : dim_at(a.in[1], axis);
          if (from.has_size() && to.has_size() && count_of(to.size(), step) != from.size())
            throw ShapeError(str("unstride: ", axis_name(x, axis), " does not fit every element ",
                                 step, " of ", to));
          const TensorType out = x.with(with_dim(x.dims(), axis, to));
          if (!dim) check_operand("unstride", "the whole", a.in[1], out.with(a.in[1].dtype()));
          a.out.push_back(dim ? out : x.with(a.in[1].dims()));
        },
    .kernel =
        [](KernelArgs& a) {
          const StrideAttrs& attrs = a.attr<StrideAttrs>();
          const Tensor& x = a.input(0);
          const Tensor& out = a.make();
          std::memset(out.data<void>(), 0, static_cast<std::size_t>(out.type().bytes()));
          copy_rows(size_of(x.dtype()), view_axis(x.type(), attrs.axis),
                    view_axis(out.type(), attrs.axis), attrs.step, true, out.data<void>(),
                    x.data<void>());
        },
    .vjp =
        [](Vjp& at) {
          const auto& [axis, step, to] = at.attr<StrideAttrs>();
          const Tensor g = without_padding(at.cotangent(), axis);
          at.add(0, stride_positions(g, {axis, step, named_dim(at.input_type(0), axis)}));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim longer("time", tensor({5, 2}, {dims[0]}));
          return OpSamples{
              {{{TensorType(f32, {3, 2})}}, make_attrs(StrideAttrs{0, 2, Dim(5)})},
              {{{TensorType(f32, {2, 2, 2})}, {TensorType(f32, {2, 6, 2}), -2, 2, false}},
               make_attrs(StrideAttrs{1, 3, {}})},
              {{{TensorType(f32, {0, 2})}}, make_attrs(StrideAttrs{0, 2, Dim(0)})},
              {{{TensorType(f32, dims)}}, make_attrs(StrideAttrs{1, 2, longer})}};
        },
    .iteration_batching = axis_across_iterations<StrideAttrs>,
    .axes = axes_beside_worked<StrideAttrs>,
    .fails = fails_without_memory,
};

// ---- Public functions ---------------------------------------------------------------------------

namespace {
/// slice with a step other than 1, of x alone: AlongAxis slices the lengths that run over the axis.
Tensor slice_by_step(const Tensor& x, int axis, std::int64_t begin, std::optional<std::int64_t> end,
                     std::int64_t step, const std::optional<Dim>& to) {
  const Dim dim = dim_at(x.type(), axis);
  Tensor part = clear_padding(x, axis, to);
  if (step > 0) {
    part = slice_shown(part, axis, begin, end, std::nullopt);
  } else {
    for (const Dim& of : dim.length_dims())
      if (!contains(x.dims(), of))
        throw ShapeError(str("slice: step ", step, " counts from the ends of ", dim, ", but ",
                             x.type(), " has no dim ", of, " that tells them apart"));
    // Position i, from the front or from the end, is -1 - i of the reversed tensor.
    step = -std::max(step, -std::numeric_limits<std::int64_t>::max());
    part = slice_shown(reverse_shown(part, axis), axis, -1 - begin,
                       end ? std::optional(-1 - *end) : end, std::nullopt);
  }
  const Dim& rest = dim_at(part.type(), axis);
  const std::int64_t count =
      rest.has_size() && !rest.is_ragged() ? count_of(rest.size(), step) : -1;
  auto named = changed_dim(dim, to, count, [&] {
    // 1 + (length - 1) / step, and 0 for an empty entry: length + step might not fit into 32 bits.
    const Tensor lengths = rest.lengths();
    const auto most = std::min(step, kLargestI32);
    return minimum(lengths, 1 + floor_divide(maximum(lengths - 1, 0), most));
  });
  return stride_positions(part, {axis, step, std::move(named)});
}
}  // namespace

Tensor slice(const Tensor& x, const Axis& along, std::int64_t begin,
             std::optional<std::int64_t> end, std::int64_t step, std::optional<Dim> to) {
  const int axis = along.in(x, "slice");
  if (step == 0)
    throw ArgumentError(str("slice: step 0 along ", axis_name(x.type(), axis),
                            "; a step is positive, or negative to run backwards"));
  if (step == 1) return slice(x, axis, begin, end, std::move(to));
  const auto take = [&](const Tensor& of, int axis) {
    Tensor result = slice_by_step(of, axis, begin, end, step, to);
    to = named_dim(result.type(), axis);
    return result;
  };
  if (!has_lengths_along(x.type(), axis)) return take(x, axis);
  const Dim dim = dim_at(x.type(), axis);
  const auto key = [&] {
    return key_along("slice by step", {dim})
        .text(str(begin, ':', end ? str(*end) : "", ':', step))
        .number(to->serial())
        .take();
  };
  return AlongAxis({dim}, take,
                   {.keeps_axis = true, .key = key, .entries = with_entries_of({dim})})(x, axis);
}

Tensor shift(const Tensor& x, const Axis& along, std::int64_t n, double value) {
  constexpr std::int64_t kFar = kLargestI32;
  const int axis = along.in(x, "shift");
  const Dim dim = dim_at(x.type(), axis);
  // No ragged entry is longer than kFar: all of its elements leave.
  const bool may_be_longer = !dim.is_ragged() && (!dim.has_size() || dim.size() > kFar);
  if (n != std::clamp(n, -kFar, kFar) && may_be_longer) checked_i32(n, "shift", "the offset");
  // Elements that move to the left come from beyond each entry's end. Elements that move to another
  // entry may come from beyond the end of a shorter one.
  const Tensor offset =
      computed_plainly([&] { return full({}, -std::clamp(n, -kFar, kFar), i32); });
  const auto shifted = [&](const Tensor& of, int axis, double value) {
    const bool is_hidden = n != 0 && reduces_padding(of.type(), {axis});
    return shift(is_hidden ? mask_padding(of, value) : of, offset, axis, dim, value);
  };
  if (n == 0 || !has_lengths_along(x.type(), axis)) return shifted(x, axis, value);
  // New places have length 0, so `value` is padding there.
  check_fits("shift", value, x.type());
  const auto take = [&](const Tensor& of, int axis) { return shifted(of, axis, 0); };
  const auto key = [&] {
    return key_along("shift", {dim}).number(static_cast<std::uint64_t>(n)).take();
  };
  return AlongAxis(
      {dim}, take,
      {.keeps_axis = true, .key = key, .entries = with_entries_of({dim}), .makes_places = true})(
      x, axis);
}

}  // namespace reel
