// reverse: reverses elements along an axis.
#include <cstring>

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

namespace reel {
namespace {

/// Reverses each entry within its own length; padding stays in place.
void reverse_entries(const Tensor& x, const Tensor& out, int axis) {
  const AxisView view = view_axis(x.type(), axis);
  const std::size_t item = size_of(x.dtype());
  for_each_entry(
      x.type(), axis, Tensor(dim_at(x.type(), axis).node()->lengths),
      [&](std::int64_t outer, std::int64_t first, std::int64_t count, std::int64_t length) {
        for (std::int64_t p = 0; p < view.size; ++p) {
          const std::int64_t q = p < length ? length - 1 - p : p;
          const auto at = [&](std::int64_t row) {
            return static_cast<std::size_t>((outer * view.size + row) * view.inner + first) * item;
          };
          std::memcpy(out.data<char>() + at(p), x.data<char>() + at(q),
                      static_cast<std::size_t>(count) * item);
        }
      });
}

}  // namespace

const Op reverse_op{
    .name = "reverse",
    .type =
        [](TypeArgs& a) {
          check_axis(a.in[0], a.attr<ReverseAttrs>().axis);
          a.out.push_back(a.in[0]);
        },
    .kernel =
        [](KernelArgs& a) {
          const int axis = a.attr<ReverseAttrs>().axis;
          const Tensor& x = a.input(0);
          const Tensor& out = a.make();
          if (x.type().numel() == 0) return;
          if (is_masked(x.type(), axis)) return reverse_entries(x, out, axis);
          const AxisView view = view_axis(x.type(), axis);
          const std::size_t item = size_of(x.dtype());
          const std::int64_t last = (view.size - 1) * view.inner, whole = view.size * view.inner;
          copy_strided(item,
                       {{view.outer, whole, whole},
                        {view.size, view.inner, -view.inner},
                        {view.inner, 1, 1}},
                       out.data<void>(), x.data<char>() + static_cast<std::size_t>(last) * item);
        },
    .vjp =
        [](Vjp& at) {
          const ReverseAttrs& attrs = at.attr<ReverseAttrs>();
          const Tensor g = at.cotangent();
          at.add(0, bind(reverse_op, {attrs.is_shown ? g : clear_padding(g, attrs.axis)},
                         make_attrs(ReverseAttrs(attrs))));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          return OpSamples{
              {{{TensorType(f32, {4})}}, make_attrs(ReverseAttrs{0})},
              {{{TensorType(f32, {2, 3, 2})}}, make_attrs(ReverseAttrs{1})},
              {{{TensorType(f32, dims)}}, make_attrs(ReverseAttrs{1})},
              {{{TensorType(f32, {dims[1], dims[2], dims[0]})}}, make_attrs(ReverseAttrs{0})},
              {{{TensorType(f32, {dims[1]})}}, make_attrs(ReverseAttrs{0})},
              {{{TensorType(f32, {3, 0})}}, make_attrs(ReverseAttrs{0})},
              {{{TensorType(f32, {4, 2})}}, make_attrs(ReverseAttrs{0, true})}};
        },
    .iteration_batching = axis_across_iterations<ReverseAttrs>,
    .axes = axes_beside_worked<ReverseAttrs>,
    .fails = fails_without_memory,
    .reads_lengths =
        [](const OpCall& call, std::size_t, int) {
          return dim_at(call.in[0], call.attr<ReverseAttrs>().axis).is_ragged();
        },
};

Tensor reverse_shown(const Tensor& x, int axis) {
  return bind(reverse_op, {x}, make_attrs(ReverseAttrs{axis, !dim_at(x.type(), axis).is_ragged()}));
}
Tensor reverse(const Tensor& x, const Axis& along) {
  const auto take = [](const Tensor& of, int axis) {
    return bind(reverse_op, {of}, make_attrs(ReverseAttrs{axis, false}));
  };
  const int axis = along.in(x, "reverse");
  const Dim dim = dim_at(x.type(), axis);
  const auto key = [&] { return key_along("reverse", {dim}); };
  if (!has_lengths_along(x.type(), axis)) return with_original_dims(take(x, axis), key);
  return AlongAxis(
      {dim}, take,
      {.keeps_axis = true, .key = key, .undoes = key, .entries = with_entries_of({dim})})(x, axis);
}

}  // namespace reel
