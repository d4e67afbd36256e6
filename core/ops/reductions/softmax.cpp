// softmax, log_softmax and logsumexp.
#include <algorithm>
#include <limits>

#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/kernels/softmax_table.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();
constexpr std::string_view kCastToFloat = "cast it to f32 or f64";

const SoftmaxTable& table() {
  static const SoftmaxTable& chosen = for_this_processor(REEL_TABLES(softmaxes));
  return chosen;
}

/// Runs a loop that takes one group of adjacent axes; the public functions ensure that. A result of
/// x's type may replace x: a loop reads a row or a stripe of columns before it writes there.
template <ReductionLoop (SoftmaxTable::*kLoops)[2]>
void kernel(KernelArgs& args) {
  const TensorType type = args.input(0).type();
  const char* const x = args.input(0).data<char>();
  const Reduced sizes = view_axes(type, args.attr<ReduceAttrs>().axes);
  const Tensor& y = args.types[0] == type ? args.reuse() : args.make();
  const ReductionLoop loop = (table().*kLoops)[type.dtype() == f64];
  const auto bytes_of_block = [&](const TensorType& of) {
    return of.bytes() / std::max(sizes.outer, std::int64_t{1});
  };
  const std::int64_t of_x = bytes_of_block(type), of_y = bytes_of_block(y.type());
  constexpr std::int64_t kWork = 8;  // exp twice, a sum and a maximum: two nanoseconds an element
  parallel_ranges(sizes.outer, type.numel() * kWork, [&](std::int64_t first, std::int64_t count) {
    loop(x + first * of_x, y.data<char>() + first * of_y, {count, sizes.n, sizes.inner});
  });
}

void same_float(TypeArgs& a) {
  check_float(a.op.name, a.in[0], kCastToFloat);
  check_axes(a.in[0], a.attr<ReduceAttrs>().axes);
  a.out.push_back(a.in[0]);
}

OpSamples samples() {
  const auto sample = [](const Dims& dims, const std::vector<int>& axes) {
    return OpSample{{{TensorType(f32, dims)}}, reduce_attrs(axes)};
  };
  static const Dim& batch = *new Dim("batch", 2);
  static const Dim& time = *new Dim("time", tensor({3, 1}, {batch}));
  static const Dim& feature = *new Dim("feature", 4);
  return {
      sample({5}, {0}),       sample({2, 40}, {1}),          sample({4, 3}, {0}),
      sample({2, 3, 4}, {1}), sample({2, 3, 4}, {0, 1}),     sample({2, 3, 4}, {1, 2}),
      sample({0, 3}, {1}),    sample({batch, feature}, {0}), sample({batch, time, feature}, {2})};
}

}  // namespace

// x̄ = softmax(x) ȳ, which sums to ȳ. exp(x - y) would have the rounding error of y, 6 % at 1e6.
// For a row of only -inf, y is -inf: its cotangent counts as 0, so that it makes no NaN.
const Op logsumexp_op{
    .name = "logsumexp",
    .type =
        [](TypeArgs& a) {
          check_float(a.op.name, a.in[0], kCastToFloat);
          reduced_rule(a);
        },
    .kernel = kernel<&SoftmaxTable::logsumexp>,
    .vjp =
        [](Vjp& at) {
          const std::vector<int>& axes = at.attr<ReduceAttrs>().axes;
          const Tensor g = where(equal(at.output(), kNothing), 0, at.cotangent());
          at.add(0, bind(softmax_op, {at.input(0)}, at.attrs()) *
                        broadcastable(g, axes, at.input_type(0)));
        },
    .reads = {.inputs = 1, .outputs = 1},
    .samples = samples,
    .iteration_batching = axes_across_iterations,
    .axes = reduced_axes,
    .fails = fails_without_memory,
    .padding = Padding::dropped,
    .neutral = Neutral::minus_infinity,
};

// x̄ = y (ȳ - Σ y ȳ), the sum without padding.
const Op softmax_op{
    .name = "softmax",
    .type = same_float,
    .kernel = kernel<&SoftmaxTable::softmax>,
    .vjp =
        [](Vjp& at) {
          const std::vector<int>& axes = at.attr<ReduceAttrs>().axes;
          const Tensor &y = at.output(), g = at.cotangent();
          at.add(0, y * (g - broadcastable(sum(y * g, axes_of(axes)), axes, at.input_type(0))));
        },
    .reads = {.outputs = 1},
    .samples = samples,
    .iteration_batching = axes_across_iterations,
    .works_in_place = true,
    .axes = axes_beside_reduced,
    .fails = fails_without_memory,
    .padding = Padding::dropped,
    .neutral = Neutral::minus_infinity,
};

// x̄ = ȳ - exp(y) Σ ȳ.
const Op log_softmax_op{
    .name = "log_softmax",
    .type = same_float,
    .kernel = kernel<&SoftmaxTable::log_softmax>,
    .vjp =
        [](Vjp& at) {
          const std::vector<int>& axes = at.attr<ReduceAttrs>().axes;
          const Tensor g = at.cotangent();
          at.add(0, g - exp(at.output()) *
                            broadcastable(sum(g, axes_of(axes)), axes, at.input_type(0)));
        },
    .reads = {.outputs = 1},
    .samples = samples,
    .iteration_batching = axes_across_iterations,
    .works_in_place = true,
    .axes = axes_beside_reduced,
    .fails = fails_without_memory,
    .padding = Padding::dropped,
    .neutral = Neutral::minus_infinity,
};

namespace {

/// Calls fn(x, axes) with adjacent axes: moved to the end of x if they are not adjacent. The result
/// of fn has its axes in the original order.
template <class Fn>
Tensor side_by_side(const Tensor& x, std::vector<int> axes, bool keeps_axes, const Fn& fn) {
  const int count = static_cast<int>(axes.size()), rank = x.rank();
  if (count == 0 || axes.back() - axes.front() == count - 1) return fn(x, axes);
  std::vector<Axis> order, back(static_cast<std::size_t>(rank), Axis(0));
  std::vector<int> moved;
  std::vector<int> all;
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) all.push_back(i);
  for (int axis : axes) moved.push_back(static_cast<int>(all.size())), all.push_back(axis);
  for (int i = 0; i < rank; ++i) {
    order.push_back(all[static_cast<std::size_t>(i)]);
    back[static_cast<std::size_t>(all[static_cast<std::size_t>(i)])] = i;
  }
  const Tensor result = fn(transpose(x, Axes(std::move(order))), moved);
  return keeps_axes ? transpose(result, Axes(std::move(back))) : result;
}

}  // namespace

Tensor logsumexp(const Tensor& x, const Axes& axes, Keep keep) {
  check_float("logsumexp", x, kCastToFloat);
  return over("logsumexp", x, axes, keep, [&](const std::vector<int>& at) {
    return side_by_side(x, at, false, [](const Tensor& x, const std::vector<int>& axes) {
      return bind(logsumexp_op, {without_padding(x, axes, kNothing)}, reduce_attrs(axes));
    });
  });
}

Tensor logsumexp(const Tensor& x) { return logsumexp(x, axes_of(all_positions("logsumexp", x))); }

Tensor softmax(const Tensor& x, const Axes& axes) {
  check_float("softmax", x, kCastToFloat);
  return side_by_side(
      x, positions(x, axes, "softmax"), true, [](const Tensor& x, const std::vector<int>& axes) {
        return bind(softmax_op, {without_padding(x, axes, kNothing)}, reduce_attrs(axes));
      });
}

Tensor log_softmax(const Tensor& x, const Axes& axes) {
  check_float("log_softmax", x, kCastToFloat);
  return side_by_side(
      x, positions(x, axes, "log_softmax"), true,
      [](const Tensor& x, const std::vector<int>& axes) {
        return without_padding(
            bind(log_softmax_op, {without_padding(x, axes, kNothing)}, reduce_attrs(axes)), axes,
            0);
      });
}

}  // namespace reel
