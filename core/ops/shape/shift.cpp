// shift: moves elements along an axis, by an offset for each entry.
#include <algorithm>
#include <cstring>

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

/// Offsets that differ between iterations get named axes, because plain axes of equal size would be
/// ambiguous. Offsets that are equal in all iterations run over the same entries as in each one.
Tensors shift_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  ShiftAttrs attrs = at.attr<ShiftAttrs>();
  ++attrs.axis;
  const Tensor x = at.many(0), offsets = at.in[1];
  if (!at.is_many[1] || x.type().is_named())
    return {bind(at.op, {x, offsets}, make_attrs(std::move(attrs)))};
  if (has_unknown_size(x.type()) || !attrs.to.has_size()) return {};
  Dims names, of_offsets;
  for (const Dim& dim : x.dims()) names.emplace_back("axis", dim.size());
  for (int axis = 0; axis < offsets.rank(); ++axis) {
    const int in_step = axis ? find(without_dim(x.dims(), 0), offsets.dims()[axis]) : -1;
    of_offsets.push_back(names[static_cast<std::size_t>(in_step + 1)]);
  }
  attrs.to = Dim("to", attrs.to.size());
  const Tensor shifted =
      bind(at.op, {reshape(x, names), reshape(offsets, of_offsets)}, make_attrs(std::move(attrs)));
  return {reshape(shifted, at.with_time(at.step_out[0].dims()))};
}

}  // namespace

const Op shift_op{
    .name = "shift",
    .type =
        [](TypeArgs& a) {
          const auto& [axis, to, value] = a.attr<ShiftAttrs>();
          const TensorType &x = a.in[0], &offsets = a.in[1];
          check_axis(x, axis);
          check_fits("shift", value, x);
          if (offsets.dtype() != i32)
            throw DTypeError(str("shift: offsets must be i32, got ", offsets));
          for (const Dim& dim : offsets.dims()) {  // equal plain sizes would be one entry dim
            const bool is_one = std::ranges::count(x.dims(), dim) == 1 &&
                                std::ranges::count(offsets.dims(), dim) == 1;
            if (!is_one || find(x.dims(), dim) == axis)
              throw ShapeError(str("shift: offsets ", offsets, " run over dim ", dim,
                                   ", which is no entry dim of ", x));
          }
          a.out.push_back(x.with(with_dim(x.dims(), axis, to)));
        },
    .kernel =
        [](KernelArgs& a) {
          const int axis = a.attr<ShiftAttrs>().axis;
          const Tensor& x = a.input(0);
          const Tensor& out = a.make();
          const AxisView from = view_axis(x.type(), axis), to = view_axis(out.type(), axis);
          const std::size_t item = size_of(x.dtype());
          visit(x.dtype(), [&](auto zero) {
            const auto value = static_cast<decltype(zero)>(a.attr<ShiftAttrs>().value);
            fill_items(item, out.data<void>(), out.type().numel(), &value);
          });
          const auto at = [&](char* data, const AxisView& view, std::int64_t outer,
                              std::int64_t row, std::int64_t first) {
            return data +
                   static_cast<std::size_t>((outer * view.size + row) * view.inner + first) * item;
          };
          for_each_entry(
              x.type(), axis, a.input(1),
              [&](std::int64_t outer, std::int64_t first, std::int64_t count, std::int64_t offset) {
                const std::int64_t begin = std::max<std::int64_t>(0, -offset);
                const std::int64_t end = std::min(to.size, from.size - offset);
                if (count == to.inner) {  // whole rows lie side by side
                  if (end > begin)
                    std::memcpy(at(out.data<char>(), to, outer, begin, 0),
                                at(x.data<char>(), from, outer, begin + offset, 0),
                                static_cast<std::size_t>((end - begin) * count) * item);
                  return;
                }
                for (std::int64_t p = begin; p < end; ++p)
                  std::memcpy(at(out.data<char>(), to, outer, p, first),
                              at(x.data<char>(), from, outer, p + offset, first),
                              static_cast<std::size_t>(count) * item);
              });
        },
    .vjp =
        [](Vjp& at) {
          const int axis = at.attr<ShiftAttrs>().axis;
          if (!at.needs(0)) return;
          const Tensor g = without_padding(at.cotangent(), axis);
          at.add(0, shift(g, neg(at.input(1)), axis, dim_at(at.input_type(0), axis)));
        },
    .reads = {.inputs = 0b10},
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim steps("steps", 4), all("all", 3);
          return OpSamples{{{{TensorType(f32, {dims[0], steps, dims[2]})},
                             {TensorType(i32, {dims[0]}), -3, 3, false}},
                            make_attrs(ShiftAttrs{1, dims[1]})},
                           {{{TensorType(f32, {steps, dims[2], dims[0]})},
                             {TensorType(i32, {dims[0]}), -2, 2, false}},
                            make_attrs(ShiftAttrs{0, all})},
                           {{{TensorType(f32, dims)}, {TensorType(i32, {dims[0]}), -1, 1, false}},
                            make_attrs(ShiftAttrs{2, all})},
                           {{{TensorType(f32, {3})}, {TensorType(i32), -1, 1, false}},
                            make_attrs(ShiftAttrs{0, 4})},
                           {{{TensorType(f32, {2, 3})}, {TensorType(i32), -1, 1, false}},
                            make_attrs(ShiftAttrs{1, 3, 0.5})},
                           {{{TensorType(f32, {dims[0], Dim("none", 0)})},
                             {TensorType(i32, {dims[0]}), -1, 1, false}},
                            make_attrs(ShiftAttrs{1, Dim("some", 2)})}};
        },
    .iteration_batching = shift_across_iterations,
    .axes =
        [](const OpCall& call, AxisFactors& f) {
          axes_beside(call.attr<ShiftAttrs>().axis, 0, call, f);
          for (int i = 0; i < call.in[1].rank(); ++i)
            f.in(1, i) = find(call.in[0].dims(), call.in[1].dims()[static_cast<std::size_t>(i)]);
        },
    .zero_if =
        [](const Attrs* attrs, std::uint32_t zeros) {
          return (zeros & 0b1) && get<ShiftAttrs>(attrs).value == 0;
        },
    .fails = fails_without_memory,
};

Tensor shift(const Tensor& x, const Tensor& offsets, int axis, const Dim& to, double value) {
  return bind(shift_op, {x, offsets}, make_attrs(ShiftAttrs{axis, canonical(to), value}));
}

Tensor resized(const Tensor& x, const Dims& dims) {
  Tensor result = x;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (!(result.dims()[axis] == dims[axis]))
      result = shift(result, full({}, 0, i32), axis, canonical(dims[axis]));
  return result;
}

// ---- Public function ----------------------------------------------------------------------------

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
  const auto key = [&] { return key_along("shift", {dim}).number(static_cast<std::uint64_t>(n)); };
  return AlongAxis(
      {dim}, take,
      {.keeps_axis = true, .key = key, .entries = with_entries_of({dim}), .makes_places = true})(
      x, axis);
}

}  // namespace reel
