// Running sums and products along an axis, and the recurrence for their gradients.
#include "reel/core/ops/reductions/cumulative.h"

#include <type_traits>
#include <vector>

#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

AttrsRef along(int axis, bool reverse) { return make_attrs(CumulativeAttrs{axis, true, reverse}); }

constexpr std::string_view kRepair = "cast it to i32";

void same_number(TypeArgs& a) {
  check_number(a.op.name, a.in[0], kRepair);
  check_axis(a.in[0], a.attr<CumulativeAttrs>().axis);
  a.out.push_back(a.in[0]);
}

void recurrence_rule(TypeArgs& a) {
  check_operand(a.op.name, "the operand of terms", a.in[1], a.in[0], Fits::dims);
  same_number(a);
}

/// The accumulator of a running sum: double for floats, as in sums; unsigned for integers, which
/// wrap around.
template <class T>
struct SumOf {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct SumOf<float> {
  using Type = double;
};
template <>
struct SumOf<double> {
  using Type = double;
};

/// Calls fn(zero, at, state) for every element in the order of the walk. `zero` has the type of the
/// elements, `at` is a position in memory, and `state` is `first` where an axis begins.
template <class Fn>
void walk(const TensorType& type, const CumulativeAttrs& attrs, int first, const Fn& fn) {
  const AxisView view = view_axis(type, attrs.axis);
  visit(type.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) {
      using Sum = typename SumOf<T>::Type;
      std::vector<Sum> states(static_cast<std::size_t>(view.inner));
      for (std::int64_t outer = 0; outer < view.outer; ++outer) {
        states.assign(states.size(), static_cast<Sum>(first));
        for (std::int64_t k = 0; k < view.size; ++k) {
          const std::int64_t row = attrs.reverse ? view.size - 1 - k : k;
          const std::int64_t at = (outer * view.size + row) * view.inner;
          for (std::int64_t i = 0; i < view.inner; ++i)
            fn(zero, at + i, states[static_cast<std::size_t>(i)]);
        }
      }
    }
  });
}

void cumsum_kernel(KernelArgs& args) {
  const auto& attrs = args.attr<CumulativeAttrs>();
  const Tensor& x = args.input(0);
  const Tensor& out = args.make();
  walk(x.type(), attrs, 0, [&](auto zero, std::int64_t at, auto& sum) {
    using T = decltype(zero);
    using Sum = std::decay_t<decltype(sum)>;
    const Sum before = sum;
    sum += static_cast<Sum>(x.data<T>()[at]);
    out.data<T>()[at] = static_cast<T>(attrs.exclusive ? before : sum);
  });
}

void product_before_kernel(KernelArgs& args) {
  const Tensor& x = args.input(0);
  const Tensor& out = args.make();
  walk(x.type(), args.attr<CumulativeAttrs>(), 1, [&](auto zero, std::int64_t at, auto& product) {
    using T = decltype(zero);
    out.data<T>()[at] = static_cast<T>(product);
    product *= static_cast<std::decay_t<decltype(product)>>(x.data<T>()[at]);
  });
}

void recurrence_kernel(KernelArgs& args) {
  const Tensor &x = args.input(0), &c = args.input(1);
  const Tensor& out = args.make();
  walk(x.type(), args.attr<CumulativeAttrs>(), 0, [&](auto zero, std::int64_t at, auto& state) {
    using T = decltype(zero);
    using Sum = std::decay_t<decltype(state)>;
    out.data<T>()[at] = static_cast<T>(state);
    state = static_cast<Sum>(c.data<T>()[at]) + static_cast<Sum>(x.data<T>()[at]) * state;
  });
}

OpSamples samples(std::size_t inputs, bool may_be_inclusive) {
  const Dim batch("batch", 2), feature("feature", 4);
  const Dim time("time", tensor({3, 1}, {batch}));
  const std::pair<Dims, int> shapes[] = {
      {{5}, 0},    {{2, 3}, 0}, {{2, 3}, 1},           {{2, 3, 4}, 1},
      {{0, 3}, 1}, {{3, 0}, 1}, {{batch, feature}, 0}, {{batch, time, feature}, 2}};
  OpSamples result;
  for (const auto& [dims, axis] : shapes)
    for (const bool exclusive : {true, false})
      for (const bool reverse : {false, true})
        if (exclusive || may_be_inclusive)
          result.push_back({std::vector<SampleInput>(inputs, {TensorType(f32, dims), -1.5, 1.5}),
                            make_attrs(CumulativeAttrs{axis, exclusive, reverse})});
  return result;
}

}  // namespace

// x̄ is the running sum of ȳ from the other end.
const Op cumsum_op{
    .name = "cumsum",
    .type = same_number,
    .kernel = cumsum_kernel,
    .vjp =
        [](Vjp& at) {
          CumulativeAttrs attrs = at.attr<CumulativeAttrs>();
          attrs.reverse = !attrs.reverse;
          at.add(0, bind(cumsum_op, {at.cotangent()}, make_attrs(attrs)));
        },
    .samples = [] { return samples(1, true); },
    .iteration_batching = axis_across_iterations<CumulativeAttrs>,
    .axes = axes_beside_worked<CumulativeAttrs>,
    .fails = fails_without_memory,
};

// y_k = Π_{j<k} x_j. Without quotients: x̄_i = y_i Σ_{k>i} ȳ_k Π_{i<j<k} x_j. The sum is the
// recurrence from the other end.
const Op product_before_op{
    .name = "product_before",
    .type = same_number,
    .kernel = product_before_kernel,
    .vjp =
        [](Vjp& at) {
          const auto& attrs = at.attr<CumulativeAttrs>();
          at.add(0, at.output() * bind(recurrence_op, {at.input(0), at.cotangent()},
                                       along(attrs.axis, !attrs.reverse)));
        },
    .reads = {.inputs = 1, .outputs = 1},
    .samples = [] { return samples(1, false); },
    .iteration_batching = axis_across_iterations<CumulativeAttrs>,
    .axes = axes_beside_worked<CumulativeAttrs>,
    .fails = fails_without_memory,
};

// t_0 = 0, t_{i+1} = c_i + x_i t_i. Its gradient is the same recurrence from the other end: c̄ = v,
// x̄ = v t for v_{i-1} = t̄_i + x_i v_i.
const Op recurrence_op{
    .name = "recurrence",
    .type = recurrence_rule,
    .kernel = recurrence_kernel,
    .vjp =
        [](Vjp& at) {
          const auto& attrs = at.attr<CumulativeAttrs>();
          const Tensor v =
              bind(recurrence_op, {at.input(0), at.cotangent()}, along(attrs.axis, !attrs.reverse));
          if (at.needs(0)) at.add(0, v * at.output());
          if (at.needs(1)) at.add(1, v);
        },
    .reads = {.inputs = 1, .outputs = 1},
    .samples = [] { return samples(2, false); },
    .iteration_batching = axis_across_iterations<CumulativeAttrs>,
    .axes = axes_beside_worked<CumulativeAttrs>,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b10) != 0; },
    .fails = fails_without_memory,
};

Tensor product_before(const Tensor& x, int axis, bool reverse) {
  return bind(product_before_op, {x}, along(axis, reverse));
}

Tensor cumsum(const Tensor& x, const Axis& axis, Cumulative how) {
  check_number("cumsum", x, kRepair);
  const int at = axis.in(x, "cumsum");
  const Tensor sums = bind(cumsum_op, {without_padding(x, {at}, 0.)},
                           make_attrs(CumulativeAttrs{at, how.exclusive, how.reverse}));
  return without_padding(sums, {at}, 0.);
}

Tensor cumprod(const Tensor& x, const Axis& axis, Cumulative how) {
  check_number("cumprod", x, kRepair);
  const int at = axis.in(x, "cumprod");
  const Tensor clean = apart_from(x, {at}, without_padding(x, {at}, 1.));
  const Tensor before = product_before(clean, at, how.reverse);
  return without_padding(how.exclusive ? before : before * clean, {at}, 0.);
}

namespace {
const Op* const kCumulativeOps[] = {&cumsum_op, &product_before_op, &recurrence_op};
}
std::span<const Op* const> cumulative_ops() { return kCumulativeOps; }

}  // namespace reel
