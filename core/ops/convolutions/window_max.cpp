// The largest element of each window: the op, and the two ops of its gradient.
#include "reel/core/ops/convolutions/window_max.h"

#include <algorithm>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

int first_spatial(const PoolAttrs& attrs, const TensorType& type) {
  return type.rank() - attrs.inner - attrs.spatial();
}

// ---- Type rules ---------------------------------------------------------------------------------

void check_windows(const TypeArgs& args) {
  const auto& attrs = args.attr<PoolAttrs>();
  check_number(args.op.name, args.in[0], "cast it");
  if (first_spatial(attrs, args.in[0]) < 0)
    throw ShapeError(str(args.op.name, ": ", args.in[0], " does not have the axes of a window"));
  for (const Window& at : attrs.windows)
    if (at.taps < 1 || at.stride < 1 || at.dilation < 1)
      throw ArgumentError(str(args.op.name, ": size ", at.taps, ", stride ", at.stride,
                              " and dilation ", at.dilation, " must be positive"));
}

/// Returns the dims of the windows over x.
Dims window_dims(const TypeArgs& args, const TensorType& x) {
  const auto& attrs = args.attr<PoolAttrs>();
  Dims dims = x.dims();
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Window& at = attrs.windows[static_cast<std::size_t>(axis)];
    const int place = first_spatial(attrs, x) + axis;
    Dim& dim = dims[static_cast<std::size_t>(place)];
    const std::int64_t count = dim.has_size() ? window_count(at, dim.size()) : -1;
    dim = checked_dim(args.op.name, at.to, count, [&] {
      return str("the axis of windows of ", at.taps, " over ", axis_name(x, place));
    });
  }
  return dims;
}

void window_max_type(TypeArgs& args) {
  check_windows(args);
  const TensorType y = args.in[0].with(window_dims(args, args.in[0]));
  args.out.push_back(y);
  args.out.push_back(y.with(i32));
}

void check_taps(const TypeArgs& args, const TensorType& y) {
  check_operand(args.op.name, "taps", args.in[1], y.with(i32));
}

void window_take_type(TypeArgs& args) {
  check_windows(args);
  const TensorType y = args.in[0].with(window_dims(args, args.in[0]));
  check_taps(args, y);
  args.out.push_back(y);
}

void window_put_type(TypeArgs& args) {
  check_windows(args);
  check_taps(args, args.in[0]);
  const auto& attrs = args.attr<PoolAttrs>();
  Dims dims = args.in[0].dims();
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Window& at = attrs.windows[static_cast<std::size_t>(axis)];
    const auto place = static_cast<std::size_t>(first_spatial(attrs, args.in[0]) + axis);
    if (!at.to && args.in.size() < 3) throw InternalError("window_put without sizes of x");
    const Dim dim = at.to ? *at.to : dim_at(args.in[2], first_spatial(attrs, args.in[2]) + axis);
    if (dim.has_size() && dims[place].has_size() && !has_no_entry(dim) &&
        !has_no_entry(dims[place]) && window_count(at, dim.size()) != dims[place].size())
      throw ShapeError(str("window_put: windows of ", args.in[0], " do not fit an axis ", dim));
    dims[place] = dim;
  }
  args.out.push_back(args.in[0].with(dims));
}

// ---- Axes, vjp, many iterations -----------------------------------------------------------------

/// All axes are mapped, except for the axes of windows, which depend on each other.
void pool_axes(const OpCall& call, AxisFactors& f) {
  const auto& attrs = call.attr<PoolAttrs>();
  for (std::size_t i = 0; i < std::min<std::size_t>(call.in.size(), 2); ++i) {
    const int first = first_spatial(attrs, call.in[i]);
    for (int axis = 0; axis < call.in[i].rank(); ++axis)
      if (axis < first || axis >= first + attrs.spatial()) f.in(i, axis) = axis;
  }
}

/// Returns the attributes with the spatial axes of a type as axes of the result.
PoolAttrs with_to(PoolAttrs attrs, const TensorType& type, bool is_x) {
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Dim& dim = dim_at(type, first_spatial(attrs, type) + axis);
    std::optional<Dim>& to = attrs.windows[static_cast<std::size_t>(axis)].to;
    to = std::nullopt;
    if (dim.is_named())
      to = canonical(dim);
    else if (is_x && dim.has_size())
      to = dim;
  }
  return attrs;
}

Tensor without_padding_of_windows(Tensor g, const PoolAttrs& attrs) {
  for (int axis = 0; axis < attrs.spatial(); ++axis)
    g = without_padding(g, first_spatial(attrs, g.type()) + axis);
  return g;
}

/// Adds the cotangent of x, operand 0.
void put_cotangent(Vjp& at, const Tensor& taps) {
  const PoolAttrs& attrs = at.attr<PoolAttrs>();
  const Tensor g = without_padding_of_windows(at.cotangent(), attrs);
  const PoolAttrs made = with_to(attrs, at.input_type(0), true);
  const bool lacks_sizes =
      std::ranges::any_of(made.windows, [](const Window& window) { return !window.to; });
  Tensors operands{g, taps};
  if (lacks_sizes) operands.push_back(at.input(0));
  at.add(0, bind_window_op(window_put_op, operands, made)[0]);
}

Tensors pool_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  if (!at.is_many[0] && (at.in.size() < 2 || !at.is_many[1])) {  // only the sizes differ
    Tensors once = bind_all(at.op, Tensors(at.in.begin(), at.in.end()), at.attrs);
    for (Tensor& x : once) x = expand(x, at.with_time(x.dims()));
    return once;
  }
  Tensors in;
  for (std::size_t i = 0; i < at.in.size(); ++i) in.push_back(i < 2 ? at.many(i) : at.in[i]);
  return bind_all(at.op, std::as_const(in), at.attrs);
}

OpReads max_reads(const Attrs* attrs, std::uint32_t) {
  return {.inputs = get<PoolAttrs>(attrs).reads_shape ? 1u : 0u, .outputs = 0b10};
}
OpReads take_reads(const Attrs* attrs, std::uint32_t) {
  return {.inputs = 0b10u | (get<PoolAttrs>(attrs).reads_shape ? 1u : 0u)};
}

bool is_zero_if_first_is(const Attrs*, std::uint32_t zeros) { return zeros & 1; }

// ---- Samples ------------------------------------------------------------------------------------

struct PoolSample {
  Dims x, y;
  PoolAttrs attrs;
};
std::vector<PoolSample> pool_samples() {
  static const Dim& batch = *new Dim("batch", 2);
  static const Dim& time = *new Dim("time", tensor({4, 2}, {batch}));
  static const Dim& halved = *new Dim("halved", tensor({2, 1}, {batch}));
  static const Dim& feature = *new Dim("feature", 3);
  const auto window = [](std::int64_t taps, std::int64_t stride, std::int64_t dilation = 1,
                         std::int64_t before = 0, std::int64_t after = 0,
                         std::optional<Dim> to = {}) {
    return Window{taps, stride, dilation, before, after, std::move(to)};
  };
  return {
      {{2, 6, 3}, {2, 3, 3}, {1, {window(2, 2)}}},
      {{7, 2}, {7, 2}, {1, {window(3, 1, 1, 1, 1)}}},
      {{2, 5}, {2, 3}, {0, {window(2, 2, 2, 1, 1)}}},
      {{2, 2}, {2, 2}, {0, {window(2, 2, 1, 1, 1)}}},
      {{0, 4, 2}, {0, 3, 2}, {1, {window(2, 1)}}},
      {{2, 4, 5, 2}, {2, 2, 3, 2}, {1, {window(2, 2), window(3, 2, 1, 1, 1)}}},
      {{3, 3, 4}, {2, 2, 2}, {0, {window(2, 1), window(2, 1), window(2, 2)}}},
      {{batch, time, feature}, {batch, halved, feature}, {1, {window(2, 2, 1, 0, 0, halved)}}},
  };
}

OpSamples max_samples() {
  OpSamples result;
  for (const PoolSample& sample : pool_samples())
    result.push_back({{{TensorType(f32, sample.x)}}, make_attrs(PoolAttrs(sample.attrs))});
  return result;
}
SampleInput taps_input(const PoolSample& sample) {
  std::int64_t taps = 1;
  for (const Window& at : sample.attrs.windows) taps *= at.taps;
  return {TensorType(i32, sample.y), -1, static_cast<double>(taps - 1), false};
}
OpSamples take_samples() {
  OpSamples result;
  for (const PoolSample& sample : pool_samples())
    result.push_back({{{TensorType(f32, sample.x)}, taps_input(sample)},
                      make_attrs(with_to(sample.attrs, TensorType(f32, sample.y), false))});
  return result;
}
OpSamples put_samples() {
  OpSamples result;
  for (const PoolSample& sample : pool_samples()) {
    const TensorType x(f32, sample.x);
    PoolAttrs attrs = with_to(sample.attrs, x, true);
    std::vector<SampleInput> inputs{{TensorType(f32, sample.y)}, taps_input(sample)};
    result.push_back({inputs, make_attrs(PoolAttrs(attrs))});
    if (x.is_named()) continue;
    for (Window& at : attrs.windows) at.to = std::nullopt;
    inputs.push_back({x, -2, 2, false});
    result.push_back({inputs, make_attrs(std::move(attrs))});
  }
  return result;
}

}  // namespace

const Op window_max_op{
    .name = "window_max",
    .type = window_max_type,
    .kernel = window_max_kernel,
    .vjp =
        [](Vjp& at) {
          if (is_float(at.input_type(0).dtype()) && at.has_cotangent(0))
            put_cotangent(at, at.output(1));
        },
    .reads_by = max_reads,
    .samples = max_samples,
    .iteration_batching = pool_across_iterations,
    .axes = pool_axes,
    .fails = fails_without_memory,
};

const Op window_put_op{
    .name = "window_put",
    .type = window_put_type,
    .kernel = window_put_kernel,
    .vjp =
        [](Vjp& at) {
          const PoolAttrs& attrs = at.attr<PoolAttrs>();
          if (!at.needs(0)) return;
          const Tensor g = without_padding_of_windows(at.cotangent(), attrs);
          const Tensor x = bind_window_op(window_take_op, {g, at.input(1)},
                                          with_to(attrs, at.input_type(0), false))[0];
          at.add(0, x.type() == at.input_type(0) ? x : reshape(x, at.input_type(0).dims()));
        },
    .reads = {.inputs = 0b10},
    .samples = put_samples,
    .iteration_batching = pool_across_iterations,
    .axes = pool_axes,
    .zero_if = is_zero_if_first_is,
    .fails = fails_without_memory,
};

const Op window_take_op{
    .name = "window_take",
    .type = window_take_type,
    .kernel = window_take_kernel,
    .vjp =
        [](Vjp& at) {
          if (at.needs(0)) put_cotangent(at, at.input(1));
        },
    .reads_by = take_reads,
    .samples = take_samples,
    .iteration_batching = pool_across_iterations,
    .axes = pool_axes,
    .zero_if = is_zero_if_first_is,
    .fails = fails_without_memory,
};

Tensors bind_window_op(const Op& op, const Tensors& operands, PoolAttrs attrs) {
  const TensorType& type = operands[0].type();
  attrs.reads_shape = false;
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Dim& dim = dim_at(type, first_spatial(attrs, type) + axis);
    attrs.reads_shape = attrs.reads_shape || (!dim.is_named() && !dim.has_size());
  }
  return bind_all(op, operands, make_attrs(std::move(attrs)));
}

namespace {
const Op* const kWindowMaxOps[] = {&window_max_op, &window_put_op, &window_take_op};
}
std::span<const Op* const> window_max_ops() { return kWindowMaxOps; }

}  // namespace reel
