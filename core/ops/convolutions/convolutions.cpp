// Convolutions: the op, and the two ops of its gradients.
#include "reel/core/ops/convolutions/convolutions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/convolutions/conv_axes.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {

std::int64_t window_count(const Window& window, std::int64_t size) {
  const std::int64_t room = size + window.before + window.after - (reach_of(window) - 1);
  return room <= 0 ? 0 : (room + window.stride - 1) / window.stride;
}

std::int64_t windowed_size(const Window& window, std::int64_t count) {
  return std::max<std::int64_t>(count * window.stride + reach_of(window) - window.stride -
                                    window.before - window.after + window.extra,
                                0);
}

namespace {

// ---- Axes and facts -----------------------------------------------------------------------------

/// Batch, groups and rows are mapped; axes that the result lacks are summed. Axes of windows and
/// taps are whole.
void conv_axes(const OpCall& call, AxisFactors& f) {
  const auto& attrs = call.attr<ConvAttrs>();
  const ConvRoles roles = conv_roles(call.op);
  const ConvAxesOf first(attrs, roles.first, call.in[0].rank()),
      second(attrs, roles.second, call.in[1].rank()), out(attrs, roles.out, call.out[0].rank());
  for (int i = 0; i < attrs.batch; ++i) f.in(0, i) = f.in(1, i) = i;
  for (int i = 0; i < attrs.groups; ++i)
    f.in(0, first.groups() + i) = f.in(1, second.groups() + i) = out.groups() + i;
  const auto join = [&](int in_first, int in_second, int in_out, int count) {
    for (int i = 0; i < count; ++i) {
      const int factor = in_out < 0 ? f.add(Role::summed) : in_out + i;
      if (in_first >= 0) f.in(0, in_first + i) = factor;
      if (in_second >= 0) f.in(1, in_second + i) = factor;
    }
  };
  if (roles.out == ConvOperand::y) {
    join(first.rows(), -1, out.rows(), first.row_count());
    join(first.channels(), second.channels(), -1, attrs.ins);
    join(-1, second.outs(), out.outs(), attrs.outs);
  } else if (roles.out == ConvOperand::x) {
    join(first.rows(), -1, out.rows(), first.row_count());
    join(first.channels(), second.outs(), -1, attrs.outs);
    join(-1, second.channels(), out.channels(), attrs.ins);
  } else {
    join(first.rows(), second.rows(), -1, first.row_count());
    join(first.channels(), -1, out.channels(), attrs.ins);
    join(-1, second.outs(), out.outs(), attrs.outs);
  }
}

/// The gradient of the filter leaves out windows in padding.
bool filter_reads_lengths(const OpCall& call, std::size_t in, int axis) {
  const auto& attrs = call.attr<ConvAttrs>();
  const ConvAxesOf axes(attrs, in == 0 ? ConvOperand::x : ConvOperand::y, call.in[in].rank());
  return in < 2 && axis < axes.spatial();
}

std::int64_t conv_multiplications(const OpCall& call) {
  const TensorType &first = call.in[0], &out = call.out[0];
  if (!first.is_known() || !out.is_known()) return 0;
  const auto& attrs = call.attr<ConvAttrs>();
  const ConvRoles roles = conv_roles(call.op);
  const ConvAxesOf of_first(attrs, roles.first, first.rank()), of_out(attrs, roles.out, out.rank());
  std::int64_t taps = 1;
  for (const Window& at : attrs.windows) taps *= at.taps;
  if (roles.out == ConvOperand::y)
    return out.numel() * taps * product_of(first, of_first.channels(), attrs.ins);
  if (roles.out == ConvOperand::x)
    return first.numel() * taps * product_of(out, of_out.channels(), attrs.ins);
  std::int64_t windows = product_of(first, of_first.rows(), of_first.row_count());
  for (int axis = 0; axis < attrs.spatial(); ++axis)
    windows *= window_count(attrs.windows[static_cast<std::size_t>(axis)],
                            first.sizes()[static_cast<std::size_t>(of_first.spatial() + axis)]);
  return windows * out.numel();
}

bool conv_zero_if(const Attrs*, std::uint32_t zeros) { return (zeros & 0b11) != 0; }

/// The vjp of each op reads the other operand, and the sizes of x if only a run knows them.
OpReads conv_reads(const Attrs* attrs, std::uint32_t wanted) {
  OpReads reads = reads_the_other(attrs, wanted);
  if (get<ConvAttrs>(attrs).reads_shape && (wanted & 1)) reads.inputs |= 1;
  return reads;
}

// ---- vjp ----------------------------------------------------------------------------------------

/// Returns the attributes with the spatial axes of a type as axes of the result. x: the type is
/// x's.
ConvAttrs with_to(ConvAttrs attrs, const TensorType& type, ConvOperand which) {
  const int first = ConvAxesOf(attrs, which, type.rank()).spatial();
  for (int axis = 0; axis < attrs.spatial(); ++axis) {
    const Dim& dim = dim_at(type, first + axis);
    std::optional<Dim>& to = attrs.windows[static_cast<std::size_t>(axis)].to;
    to = std::nullopt;
    if (dim.is_named())
      to = canonical(dim);
    else if (which == ConvOperand::x && dim.has_size())
      to = dim;
  }
  return attrs;
}

bool lacks_sizes(const ConvAttrs& attrs) {
  return std::ranges::any_of(attrs.windows, [](const Window& at) { return !at.to; });
}

/// Returns the contraction of a and b to the cotangent of an operand `which` of this type. like:
/// the operand, if the vjp may read it.
Tensor contracted(const ConvAttrs& attrs, ConvOperand which, const TensorType& type,
                  const Tensor& a, const Tensor& b, const Tensor* like) {
  const Op& op = which == ConvOperand::y   ? conv_op
                 : which == ConvOperand::x ? conv_input_op
                                           : conv_filter_op;
  ConvAttrs made = with_to(attrs, type, which);
  Tensors operands{a, b};
  if (which == ConvOperand::x && lacks_sizes(made)) operands.push_back(*like);
  const Tensor result = masked_conv(op, operands, std::move(made));
  return result.type() == type ? result : reshape(result, type.dims());
}

void conv_vjp(Vjp& at) {
  const ConvAttrs& attrs = at.attr<ConvAttrs>();
  const Tensor g = at.cotangent();
  const ConvRoles roles = conv_roles(at.op());
  const bool gives_filter = roles.out == ConvOperand::f;
  if (at.needs(0)) {
    const Tensor* like = attrs.reads_shape ? &at.input(0) : nullptr;
    // The operands of each op are in the order x, f, y, but y and f of the gradient of x.
    at.add(0, roles.first == ConvOperand::x
                  ? gives_filter
                        ? contracted(attrs, ConvOperand::x, at.input_type(0), at.input(1), g, like)
                        : contracted(attrs, ConvOperand::x, at.input_type(0), g, at.input(1), like)
                  : contracted(attrs, ConvOperand::y, at.input_type(0), g, at.input(1), nullptr));
  }
  if (!at.needs(1)) return;
  if (gives_filter)
    at.add(1, contracted(attrs, ConvOperand::y, at.input_type(1), at.input(0), g, nullptr));
  else if (roles.out == ConvOperand::y)
    at.add(1, contracted(attrs, ConvOperand::f, at.input_type(1), at.input(0), g, nullptr));
  else
    at.add(1, contracted(attrs, ConvOperand::f, at.input_type(1), g, at.input(0), nullptr));
}

// ---- Many iterations ----------------------------------------------------------------------------

/// If only x or y differ, iterations are rows. Else they are entries of a batch.
Tensors conv_across_iterations(const IterationBatch& at) {
  ConvAttrs attrs = at.attr<ConvAttrs>();
  const ConvRoles roles = conv_roles(at.op);
  const bool many_first = at.is_many[0], many_second = at.is_many[1];
  const bool sums_rows =
      roles.out == ConvOperand::f && at.is_summed && many_first && many_second && attrs.batch == 0;
  Tensors in(at.in.begin(), at.in.end());
  if (!many_first && !many_second) {  // only the operand with sizes differs
    const Tensor once = reel::bind(at.op, std::as_const(in), at.attrs),
                 all = expand(once, at.with_time(once.dims()));
    return {at.is_summed ? sum(all, 0) : all};
  }
  if (at.is_summed && many_first != many_second) {
    Tensor& many = in[many_first ? 0 : 1];
    many = sum(many, 0);
    return {reel::bind(at.op, std::as_const(in), at.attrs)};
  }
  const bool are_rows = roles.second == ConvOperand::f && !many_second && attrs.batch == 0;
  if (are_rows || sums_rows) return {reel::bind(at.op, std::as_const(in), at.attrs)};
  ++attrs.batch;
  in[0] = at.many(0);
  in[1] = at.many(1);
  const Tensor all = reel::bind(at.op, std::as_const(in), make_attrs(std::move(attrs)));
  return {at.is_summed ? sum(all, 0) : all};
}

// ---- Samples ------------------------------------------------------------------------------------

struct ConvSample {
  Dims x, f, y;
  ConvAttrs attrs;
};

/// Returns calls in one to three spatial dims, with each stride, dilation and padding, groups, and
/// plain, named and ragged axes.
std::vector<ConvSample> conv_samples() {
  static const Dim& batch = *new Dim("batch", 2);
  // No padding is within reach of a window, as masked_conv() ensures for others.
  static const Dim& time = *new Dim("time", tensor({4, 2}, {batch}));
  static const Dim& halved = *new Dim("halved", tensor({2, 1}, {batch}));
  static const Dim& taps = *new Dim("taps", 2);
  static const Dim& in = *new Dim("in", 3);
  static const Dim& out = *new Dim("out", 2);
  static const Dim& group = *new Dim("group", 2);
  const auto window = [](std::int64_t count, std::int64_t stride = 1, std::int64_t dilation = 1,
                         std::int64_t before = 0, std::int64_t after = 0) {
    return Window{count, stride, dilation, before, after, {}};
  };
  const ConvAttrs plain{.ins = 1, .outs = 1};
  const auto with = [](ConvAttrs attrs, std::vector<Window> windows) {
    attrs.windows = std::move(windows);
    return attrs;
  };
  const ConvAttrs grouped{.groups = 1, .ins = 1, .outs = 1}, depthwise{.groups = 1},
      in_batches{.batch = 1, .ins = 1, .outs = 1}, bare{};
  return {
      {{2, 7, 3}, {3, 3, 4}, {2, 5, 4}, with(plain, {window(3)})},
      {{2, 7, 3}, {3, 3, 4}, {2, 7, 4}, with(plain, {window(3, 1, 1, 1, 1)})},
      {{2, 7, 3}, {3, 3, 4}, {2, 4, 4}, with(plain, {window(3, 2, 1, 1, 1)})},
      {{7, 3}, {2, 3, 1}, {3, 1}, with(plain, {window(2, 3, 2, 0, 3)})},
      {{2, 6, 2}, {2, 2, 2}, {2, 3, 2}, with(plain, {window(2, 2, 3, 2, 1)})},
      {{1, 9, 1}, {3, 1, 2}, {1, 6, 2}, with(plain, {window(3, 2, 1, 4, 0)})},
      {{2, 2, 3}, {3, 3, 4}, {2, 0, 4}, with(plain, {window(3)})},
      {{0, 5, 3}, {3, 3, 4}, {0, 3, 4}, with(plain, {window(3)})},
      {{2, 5, 0}, {3, 0, 4}, {2, 3, 4}, with(plain, {window(3)})},
      {{2, 5, 2, 3}, {3, 2, 3, 4}, {2, 3, 2, 4}, with(grouped, {window(3)})},
      {{2, 5, 9}, {3, 9}, {2, 5, 9}, with(depthwise, {window(3, 1, 1, 2, 0)})},
      {{2, 5, 3}, {2, 3}, {2, 3, 3}, with(depthwise, {window(2, 2, 2, 1, 2)})},
      {{2, 5}, {3}, {2, 3}, with(bare, {window(3)})},
      {{2, 3, 5, 2}, {2, 2, 2, 3}, {2, 3, 4, 3}, with(in_batches, {window(2)})},
      {{2, 4, 5, 2},
       {2, 3, 2, 3},
       {2, 2, 5, 3},
       with(plain, {window(2, 2), window(3, 1, 1, 1, 1)})},
      {{4, 5, 3}, {2, 3, 3}, {3, 2, 3}, with(depthwise, {window(2), window(3, 2, 1, 0, 1)})},
      {{1, 3, 3, 4, 2},
       {2, 2, 2, 2, 1},
       {1, 2, 3, 2, 1},
       with(plain, {window(2), window(2, 1, 1, 1, 0), window(2, 2)})},
      {{batch, time, in},
       {taps, in, out},
       {batch, halved, out},
       with(plain, {Window{2, 2, 1, 0, 0, halved}})},
      {{batch, time, group},
       {taps, group},
       {batch, halved, group},
       with(depthwise, {Window{2, 2, 1, 0, 0, halved}})},
      {{batch, time, in},
       {batch, taps, in, out},
       {batch, halved, out},
       with(in_batches, {Window{2, 2, 1, 0, 0, halved}})},
  };
}

OpSamples samples_of(ConvOperand first, ConvOperand second, ConvOperand out) {
  OpSamples result;
  for (const ConvSample& sample : conv_samples()) {
    const auto dims = [&](ConvOperand which) -> const Dims& {
      return which == ConvOperand::x ? sample.x : which == ConvOperand::f ? sample.f : sample.y;
    };
    const TensorType result_type(f32, dims(out));
    ConvAttrs attrs = with_to(sample.attrs, result_type, out);
    std::vector<SampleInput> inputs{{TensorType(f32, dims(first))},
                                    {TensorType(f32, dims(second))}};
    result.push_back({inputs, make_attrs(attrs)});
    if (out != ConvOperand::x || result_type.is_named()) continue;
    for (Window& at : attrs.windows) at.to = std::nullopt;
    inputs.push_back({result_type, -2, 2, false});
    result.push_back({inputs, make_attrs(std::move(attrs))});
  }
  return result;
}

constexpr Op conv_form(std::string_view name, TypeRule type, OpKernel kernel,
                       OpSamples (*samples)()) {
  return Op{
      .name = name,
      .type = type,
      .kernel = kernel,
      .vjp = conv_vjp,
      .reads_by = conv_reads,
      .samples = samples,
      .iteration_batching = conv_across_iterations,
      .gains_from_batching = true,
      .axes = conv_axes,
      .zero_if = conv_zero_if,
      .fails = fails_without_memory,
      .multiplications = conv_multiplications,
  };
}
constexpr Op with_lengths_read(Op op) {
  op.reads_lengths = filter_reads_lengths;
  return op;
}

}  // namespace

constinit const Op conv_op = conv_form("conv", conv_type, conv_kernel, [] {
  return samples_of(ConvOperand::x, ConvOperand::f, ConvOperand::y);
});
constinit const Op conv_input_op = conv_form("conv_input", conv_input_type, conv_input_kernel, [] {
  return samples_of(ConvOperand::y, ConvOperand::f, ConvOperand::x);
});
constinit const Op conv_filter_op =
    with_lengths_read(conv_form("conv_filter", conv_filter_type, conv_filter_kernel, [] {
      return samples_of(ConvOperand::x, ConvOperand::y, ConvOperand::f);
    }));

ConvTypes::ConvTypes(const OpCall& call) : x(call.in[0]), f(call.in[1]), y(call.out[0]) {
  const ConvRoles roles = conv_roles(call.op);
  for (const auto& [which, type] :
       {std::pair(roles.first, &call.in[0]), std::pair(roles.second, &call.in[1]),
        std::pair(roles.out, &call.out[0])})
    (which == ConvOperand::x ? x : which == ConvOperand::f ? f : y) = *type;
}

Tensor masked_conv(const Op& op, const Tensors& operands, ConvAttrs attrs) {
  const ConvRoles roles = conv_roles(op);
  Tensors in = operands;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const ConvOperand which = i ? roles.second : roles.first;
    const TensorType& type = in[i].type();
    const ConvAxesOf axes(attrs, which, type.rank());
    std::vector<int> summed;
    const auto add = [&](int first, int count) {
      for (int axis = first; axis < first + count; ++axis) summed.push_back(axis);
    };
    add(axes.spatial(), attrs.spatial());
    if (which != ConvOperand::y && roles.out == ConvOperand::y) add(axes.channels(), attrs.ins);
    if (which != ConvOperand::x && roles.out == ConvOperand::x) add(axes.outs(), attrs.outs);
    if (roles.out == ConvOperand::f) add(axes.rows(), axes.row_count());
    if (reduces_padding(type, summed)) in[i] = mask_padding(in[i]);
  }
  attrs.reads_shape =
      roles.first == ConvOperand::x &&
      std::ranges::any_of(attrs.windows, [&, axis = first_spatial_of_x(attrs, in[0].type())](
                                             const Window&) mutable {
        const Dim& dim = dim_at(in[0].type(), axis++);
        return !dim.is_named() && !dim.has_size();
      });
  return reel::bind(op, std::as_const(in), make_attrs(std::move(attrs)));
}

namespace {
const Op* const kConvolutionOps[] = {&conv_op, &conv_input_op, &conv_filter_op};
}
std::span<const Op* const> convolution_ops() { return kConvolutionOps; }

}  // namespace reel
