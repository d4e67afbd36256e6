// Ops that take or add elements along one axis: slice, pad.
#include "reel/core/ops/shape/slice.h"

#include <algorithm>
#include <cmath>
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
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

// ---- slice --------------------------------------------------------------------------------------

struct Positions {
  std::int64_t begin, end, step;
  std::int64_t count() const { return (end - begin) / step + ((end - begin) % step != 0); }
};

Positions positions(const SliceAttrs& attrs, std::int64_t size) {
  const auto clamped = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const std::int64_t begin = clamped(attrs.begin), end = attrs.end ? clamped(*attrs.end) : size;
  // For a single element, a larger step would only overflow.
  return {begin, std::max(begin, end), std::min(attrs.step, std::max<std::int64_t>(size, 1))};
}

std::string bounds(const SliceAttrs& attrs) {
  if (attrs.step != 1 && !attrs.begin && !attrs.end) return str("every element ", attrs.step);
  return str('[', attrs.begin, ':', attrs.end ? str(*attrs.end) : std::string(),
             attrs.step == 1 ? std::string() : str(':', attrs.step), ']');
}

/// Copies rows between the result of a slice (`some`) and the sliced tensor (`all`).
void copy_rows(std::size_t item, const AxisView& all, const Positions& at, bool spreads, char* some,
               char* whole) {
  const std::int64_t block = at.count() * all.inner, long_block = all.size * all.inner,
                     offset = at.begin * all.inner;
  whole += static_cast<std::size_t>(offset) * item;
  const std::int64_t step = at.step * all.inner;
  const std::int64_t rows = at.step == 1 ? 1 : at.count(),
                     row = block / std::max<std::int64_t>(rows, 1);
  if (spreads)
    copy_strided(item, {{all.outer, long_block, block}, {rows, step, row}, {row, 1, 1}}, whole,
                 some);
  else
    copy_strided(item, {{all.outer, block, long_block}, {rows, row, step}, {row, 1, 1}}, some,
                 whole);
}

void slice_type(TypeArgs& a) {
  const SliceAttrs& attrs = a.attr<SliceAttrs>();
  const TensorType& x = a.in[0];
  const Dim& from = dim_at(x, attrs.axis);
  const std::int64_t count = from.has_size() ? positions(attrs, from.size()).count() : -1;
  const Dim dim = checked_dim("slice", attrs.to, count,
                              [&] { return str(bounds(attrs), " of ", axis_name(x, attrs.axis)); });
  a.out.push_back(x.with(with_dim(x.dims(), attrs.axis, dim)));
}

void slice_kernel(KernelArgs& a) {
  const SliceAttrs& attrs = a.attr<SliceAttrs>();
  const Tensor& x = a.input(0);
  const AxisView view = view_axis(x.type(), attrs.axis);
  const Positions at = positions(attrs, view.size);
  const std::size_t item = size_of(x.dtype());
  if (view.outer == 1 && attrs.step == 1)
    a.alias(0, 0, at.begin * view.inner * static_cast<std::int64_t>(item));
  else
    copy_rows(item, view, at, false, a.make().data<char>(), x.data<char>());
}

/// The type of one step gives the size that a second input would, unless only a run determines it.
Tensors unslice_across_iterations(const IterationBatch& at) {
  SliceAttrs attrs = at.attr<SliceAttrs>();
  if (!attrs.to) attrs.to = dim_at(at.step_out[0], attrs.axis);
  if (attrs.to->is_undefined() || is_unknown(*attrs.to)) return {};
  ++attrs.axis;
  return {bind(at.op, {at.many(0)}, make_attrs(std::move(attrs)))};
}

SliceAttrs with_to(SliceAttrs attrs, std::optional<Dim> to) {
  attrs.to = std::move(to);
  return attrs;
}

}  // namespace

const Op slice_op{
    .name = "slice",
    .type = slice_type,
    .kernel = slice_kernel,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          const SliceAttrs& attrs = at.attr<SliceAttrs>();
          const Tensor g = without_padding(at.cotangent(), attrs.axis);
          if (attrs.reads_shape)
            at.add(0, bind(unslice_op, {g, at.input(0)}, make_attrs(with_to(attrs, std::nullopt))));
          else
            at.add(0, bind(unslice_op, {g},
                           make_attrs(with_to(attrs, dim_at(at.input_type(0), attrs.axis)))));
        },
    .reads_by = reads_shape<SliceAttrs>,
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim shorter("time", tensor({2, 0}, {dims[0]}));
          return OpSamples{
              {{{TensorType(f32, {5, 2})}}, make_attrs(SliceAttrs{0, 1, 4, {}})},
              {{{TensorType(f32, {5, 2})}}, make_attrs(SliceAttrs{0, 1, 4, {}, 1, true})},
              {{{TensorType(f32, {2, 5, 2})}}, make_attrs(SliceAttrs{1, -3, {}, {}})},
              {{{TensorType(f32, {3})}}, make_attrs(SliceAttrs{0, 2, 1, {}})},
              {{{TensorType(f32, {0, 3})}}, make_attrs(SliceAttrs{1, 0, -1, {}})},
              {{{TensorType(f32, dims)}}, make_attrs(SliceAttrs{2, 1, 2, Dim("rest", 1)})},
              {{{TensorType(f32, dims)}}, make_attrs(SliceAttrs{1, 1, {}, shorter})},
              {{{TensorType(f32, {5, 2})}}, make_attrs(SliceAttrs{0, 1, {}, {}, 2})},
              {{{TensorType(f32, {2, 6, 2})}}, make_attrs(SliceAttrs{1, 0, -1, {}, 3})},
              {{{TensorType(f32, {2, 2})}}, make_attrs(SliceAttrs{1, 0, {}, {}, 7})},
              {{{TensorType(f32, {0, 2})}}, make_attrs(SliceAttrs{0, 0, {}, {}, 2})},
              {{{TensorType(f32, dims)}}, make_attrs(SliceAttrs{1, 0, {}, shorter, 2})},
              {{{TensorType(f32, dims)}}, make_attrs(SliceAttrs{0, 0, {}, Dim("one", 1), 2})}};
        },
    .iteration_batching = axis_across_iterations<SliceAttrs>,
    .axes = axes_beside_worked<SliceAttrs>,
    .fails = fails_without_memory,
    .makes_view =
        [](const OpCall& call) {
          const SliceAttrs& attrs = call.attr<SliceAttrs>();
          return attrs.step == 1 && is_outermost(call.in[0], attrs.axis);
        },
};

const Op unslice_op{
    .name = "unslice",
    .type =
        [](TypeArgs& a) {
          const SliceAttrs& attrs = a.attr<SliceAttrs>();
          const TensorType& x = a.in[0];
          const Dim &from = dim_at(x, attrs.axis),
                    &to = attrs.to ? *attrs.to : dim_at(a.in[1], attrs.axis);
          if (from.has_size() && to.has_size() &&
              positions(attrs, to.size()).count() != from.size())
            throw ShapeError(str("unslice: ", axis_name(x, attrs.axis), " does not fit ",
                                 bounds(attrs), " of ", to));
          const TensorType out = x.with(with_dim(x.dims(), attrs.axis, to));
          if (!attrs.to) check_operand("unslice", "the whole", a.in[1], out.with(a.in[1].dtype()));
          a.out.push_back(attrs.to ? out : x.with(a.in[1].dims()));
        },
    .kernel =
        [](KernelArgs& a) {
          const SliceAttrs& attrs = a.attr<SliceAttrs>();
          const Tensor& x = a.input(0);
          const Tensor& out = a.make();
          const AxisView view = view_axis(out.type(), attrs.axis);
          const Positions at = positions(attrs, view.size);
          const std::size_t item = size_of(x.dtype());
          char* to = out.data<char>();
          if (attrs.step == 1) {
            const std::int64_t row = at.count() * view.inner, whole = view.size * view.inner;
            const std::int64_t before = at.begin * view.inner, after = whole - before - row;
            for (std::int64_t i = 0; i < view.outer; ++i) {
              char* block = to + static_cast<std::size_t>(i * whole) * item;
              std::memset(block, 0, static_cast<std::size_t>(before) * item);
              std::memset(block + static_cast<std::size_t>(before + row) * item, 0,
                          static_cast<std::size_t>(after) * item);
            }
          } else {
            std::memset(to, 0, static_cast<std::size_t>(out.type().bytes()));
          }
          copy_rows(item, view, at, true, x.data<char>(), to);
        },
    .vjp =
        [](Vjp& at) {
          const SliceAttrs& attrs = at.attr<SliceAttrs>();
          const Tensor g = without_padding(at.cotangent(), attrs.axis);
          at.add(0, slice_positions(g, with_to(attrs, named_dim(at.input_type(0), attrs.axis))));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          return OpSamples{
              {{{TensorType(f32, {3, 2})}}, make_attrs(SliceAttrs{0, 1, 4, Dim(5)})},
              {{{TensorType(f32, {2, 3, 2})}, {TensorType(f32, {2, 5, 2}), -2, 2, false}},
               make_attrs(SliceAttrs{1, -3, {}, {}})},
              {{{TensorType(f32, {0, 2})}}, make_attrs(SliceAttrs{0, 2, 1, Dim(3)})},
              {{{TensorType(f32, {dims[0], Dim("rest", 1)})}},
               make_attrs(SliceAttrs{1, 1, 2, dims[2]})},
              {{{TensorType(f32, {dims[0], Dim("rest", 2)})}},
               make_attrs(SliceAttrs{1, 1, {}, dims[1]})},
              {{{TensorType(f32, {3, 2})}}, make_attrs(SliceAttrs{0, 0, {}, Dim(5), 2})},
              {{{TensorType(f32, {2, 2, 2})}, {TensorType(f32, {2, 6, 2}), -2, 2, false}},
               make_attrs(SliceAttrs{1, 1, {}, {}, 3})},
              {{{TensorType(f32, {0, 2})}}, make_attrs(SliceAttrs{0, 0, {}, Dim(0), 2})},
              {{{TensorType(f32, {dims[0], Dim("rest", 1)})}},
               make_attrs(SliceAttrs{1, 0, {}, dims[1], 3})}};
        },
    .iteration_batching = unslice_across_iterations,
    .axes = axes_beside_worked<SliceAttrs>,
    .fails = fails_without_memory,
};

Tensor slice_positions(const Tensor& x, SliceAttrs attrs) {
  attrs.reads_shape = has_unknown_size(x.type());
  return bind(slice_op, {x}, make_attrs(std::move(attrs)));
}

// ---- pad ----------------------------------------------------------------------------------------

void check_fits(std::string_view op, double value, const TensorType& x) {
  if (!is_float(x.dtype()) && (std::trunc(value) != value || std::isinf(value)))
    throw DTypeError(str(op, ": ", value, " does not fit ", x, ", which holds no fractions"));
}

const Op pad_op{
    .name = "pad",
    .type =
        [](TypeArgs& a) {
          const PadAttrs& attrs = a.attr<PadAttrs>();
          const TensorType& x = a.in[0];
          const Dim& from = dim_at(x, attrs.axis);
          if (attrs.before < 0 || attrs.after < 0)
            throw ArgumentError(str("pad: cannot add ", attrs.before, " and ", attrs.after,
                                    " elements to ", axis_name(x, attrs.axis),
                                    "; use slice to take elements away"));
          check_fits("pad", attrs.value, x);
          const std::int64_t added = add_sizes(attrs.before, attrs.after, "pad");
          const std::int64_t size = from.has_size() ? add_sizes(from.size(), added, "pad") : -1;
          const Dim dim = checked_dim("pad", attrs.to, size, [&] {
            return str(axis_name(x, attrs.axis), " with ", attrs.before, " elements before and ",
                       attrs.after, " behind it");
          });
          a.out.push_back(x.with(with_dim(x.dims(), attrs.axis, dim)));
        },
    .kernel =
        [](KernelArgs& a) {
          const PadAttrs& attrs = a.attr<PadAttrs>();
          const Tensor& x = a.input(0);
          const Tensor& out = a.make();
          if (!out.type().numel()) return;
          const AxisView from = view_axis(x.type(), attrs.axis),
                         view = view_axis(out.type(), attrs.axis);
          const std::int64_t row = from.size * view.inner, whole = view.size * view.inner;
          const std::int64_t before = attrs.before * view.inner;
          visit(x.dtype(), [&](auto zero) {
            using T = decltype(zero);
            T* to = out.data<T>();
            const T value = static_cast<T>(attrs.value);
            constexpr std::int64_t kShort = 256 / sizeof(T);
            if (whole <= kShort)  // faster than many short runs
              fill_items(sizeof(T), to, view.outer * whole, &value);
            else
              for (std::int64_t i = 0; i < view.outer; ++i) {
                fill_items(sizeof(T), to + i * whole, before, &value);
                fill_items(sizeof(T), to + i * whole + before + row, whole - before - row, &value);
              }
            copy_strided(sizeof(T), {{view.outer, whole, row}, {row, 1, 1}}, to + before,
                         x.data<void>());
          });
        },
    .vjp =
        [](Vjp& at) {
          const PadAttrs& attrs = at.attr<PadAttrs>();
          const Tensor g = without_padding(at.cotangent(), attrs.axis);
          const auto end = attrs.after ? std::optional(-attrs.after) : std::nullopt;
          at.add(0, slice_positions(g, {attrs.axis, attrs.before, end,
                                        named_dim(at.input_type(0), attrs.axis)}));
        },
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const Dim longer("time", tensor({6, 4}, {dims[0]}));
          return OpSamples{
              {{{TensorType(f32, {2, 3})}}, make_attrs(PadAttrs{1, 1, 2, 0.5, {}})},
              {{{TensorType(f32, {2, 3})}}, make_attrs(PadAttrs{0, 0, 1, 0, {}})},
              {{{TensorType(f32, {0, 3})}}, make_attrs(PadAttrs{0, 1, 1, -1, {}})},
              {{{TensorType(f32, dims)}}, make_attrs(PadAttrs{2, 0, 1, 0, Dim("wider", 3)})},
              {{{TensorType(f32, dims)}}, make_attrs(PadAttrs{1, 3, 0, 0, longer})}};
        },
    .iteration_batching = axis_across_iterations<PadAttrs>,
    .axes = axes_beside_worked<PadAttrs>,
    .zero_if = [](const Attrs* attrs,
                  std::uint32_t zeros) { return (zeros & 0b1) && get<PadAttrs>(attrs).value == 0; },
    .fails = fails_without_memory,
};

// ---- Public functions ---------------------------------------------------------------------------

namespace {

/// Returns the place of a position, counted as in Python, in an entry of `length`. Positions beyond
/// 32 bits are clamped.
Tensor position_in(const Tensor& length, std::int64_t at) {
  at = std::clamp(at, -kLargestI32, kLargestI32);
  return at < 0 ? maximum(length + at, 0) : minimum(length, at);
}

/// Returns the length of begin..end-1 in every entry.
Tensor lengths_left(const Tensor& lengths, std::int64_t begin, std::optional<std::int64_t> end) {
  const Tensor from = position_in(lengths, begin);
  return maximum((end ? position_in(lengths, *end) : lengths) - from, 0);
}

}  // namespace

Tensor slice_shown(const Tensor& x, int axis, std::int64_t begin, std::optional<std::int64_t> end,
                   std::optional<Dim> to) {
  const Dim& dim = dim_at(x.type(), axis);
  SliceAttrs attrs{axis, begin, end, {}};
  const std::int64_t count =
      dim.has_size() && !dim.is_ragged() ? positions(attrs, dim.size()).count() : -1;
  attrs.to = changed_dim(dim, to, {&dim, 1}, count,
                         [&] { return lengths_left(dim.lengths(), begin, end); });
  if (!dim.is_ragged() || (begin >= 0 && end.value_or(0) >= 0))
    return slice_positions(x, std::move(attrs));
  // A position that counts from the end differs between entries.
  for (const Dim& of : dim.length_dims())
    if (!contains(x.dims(), of))
      throw ShapeError(str("slice: ", bounds(attrs), " counts from the ends of ", dim, ", but ",
                           x.type(), " has no dim ", of,
                           " that tells them apart; use positions that are not negative"));
  const Tensor offsets = computed_plainly([&] { return position_in(dim.lengths(), begin); });
  return shift(x, offsets, axis, *attrs.to);
}

Tensor slice(const Tensor& x, const Axis& along, std::int64_t begin,
             std::optional<std::int64_t> end, std::optional<Dim> to) {
  std::optional<Dim> made = to;
  const auto take = [&](const Tensor& of, int axis) {
    Tensor result = slice_shown(clear_padding(of, axis, made), axis, begin, end, made);
    made = named_dim(result.type(), axis);
    return result;
  };
  const int axis = along.in(x, "slice");
  if (!has_lengths_along(x.type(), axis)) return take(x, axis);
  const Dim dim = dim_at(x.type(), axis);
  const auto key = [&] {
    return key_along("slice", {dim}).text(bounds({axis, begin, end, {}})).dim(*made);
  };
  return AlongAxis({dim}, take,
                   {.keeps_axis = true, .key = key, .entries = with_entries_of({dim})})(x, axis);
}

namespace {
/// Pads x alone, without the lengths that run over the axis. given: the caller's `to`.
Tensor padded(const Tensor& x, const PadAttrs& attrs, const std::optional<Dim>& given) {
  // New elements behind a short entry stand in its former padding.
  const bool is_hidden = attrs.after > 0 && is_masked(x.type(), attrs.axis);
  return bind(
      pad_op,
      {is_hidden ? mask_padding(x, attrs.value) : clear_padding(x, attrs.axis, given, attrs.value)},
      make_attrs(PadAttrs(attrs)));
}
}  // namespace

Tensor pad(const Tensor& x, const Axis& along, std::int64_t before, std::int64_t after,
           double value, std::optional<Dim> to) {
  const int axis = along.in(x, "pad");
  const Dim dim = dim_at(x.type(), axis);
  // The type rule refuses negative numbers.
  const std::int64_t added = before >= 0 && after >= 0 ? add_sizes(before, after, "pad") : 0;
  const std::int64_t size =
      dim.has_size() && !dim.is_ragged() ? add_sizes(dim.size(), added, "pad") : -1;
  auto named = changed_dim(dim, to, {&dim, 1}, size, [&] {
    // If only a run knows the length, the sum of two i32 may wrap to a negative one, which is
    // refused.
    const std::int64_t longest = dim.has_size() ? dim.size() : 0;
    const bool may_wrap = longest > kLargestI32 - added;
    return may_wrap ? cast(dim.lengths(), i64) + added : dim.lengths() + added;
  });
  if (!has_lengths_along(x.type(), axis)) return padded(x, {axis, before, after, value, named}, to);
  // New elements have length 0, so `value` would stand in padding.
  check_fits("pad", value, x.type());
  const auto take = [&](const Tensor& of, int axis) {
    return padded(of, {axis, before, after, 0, named}, to);
  };
  const auto key = [&] {
    return key_along("pad", {dim})
        .number(static_cast<std::uint64_t>(before))
        .number(static_cast<std::uint64_t>(after))
        .dim(*named);
  };
  return AlongAxis({dim}, take,
                   {.keeps_axis = *named == dim,
                    .key = key,
                    .entries = with_entries_of({dim}),
                    .makes_places = true})(x, axis);
}

}  // namespace reel
