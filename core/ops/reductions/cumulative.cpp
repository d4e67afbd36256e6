// Running sums, products and logsumexp along an axis, and the recurrence for their gradients.
#include "reel/core/ops/reductions/cumulative.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
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
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

AttrsRef along(int axis, bool reverse) { return make_attrs(CumulativeAttrs{axis, true, reverse}); }

constexpr std::string_view kCastToInteger = "cast it to i32", kNeedsFloat = "cast it to f32 or f64";
constexpr double kInfinite = std::numeric_limits<double>::infinity();

void same_number(TypeArgs& a) {
  check_number(a.op.name, a.in[0], kCastToInteger);
  check_axis(a.in[0], a.attr<CumulativeAttrs>().axis);
  a.out.push_back(a.in[0]);
}

void running_float(TypeArgs& a) {
  check_float(a.op.name, a.in[0], kNeedsFloat);
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

/// The state of a walk that begins with `First`: an accumulator for a number, else First itself.
template <class T, class First>
struct StateOf {
  using Type = First;
};
template <class T>
struct StateOf<T, int> : SumOf<T> {};

/// log Σ exp(x) as largest + log(sum): `sum` adds exp(x - largest), at most 1 each.
struct LogSum {
  double largest = -kInfinite;
  double sum = 1;  ///< of no elements: not 0, whose logarithm raises an exception

  double value() const { return largest + std::log(sum); }
  void add(double x) {
    if (x == largest) {  // their difference is NaN if they are infinite
      sum += 1;
    } else if (x < largest) {
      sum += std::exp(x - largest);
    } else {  // or NaN, which stays the largest
      sum = sum * std::exp(largest - x) + 1;
      largest = x;
    }
  }
};

/// Computes out = step(state, x, c) along contiguous lines, kLines at a time: each is a chain of
/// dependent steps. `state` is `first` where a line begins. c: the last operand, which may be x.
template <std::int64_t kLines, class T, class First, class Step>
void walk_lines(const AxisView& view, bool is_reverse, First first, const T* __restrict x,
                const T* __restrict c, T* __restrict out, const Step& step) {
  using Sum = typename StateOf<T, First>::Type;
  const std::int64_t begin = is_reverse ? view.size - 1 : 0, by = is_reverse ? -1 : 1;
  for (std::int64_t line = 0; line < view.outer; line += kLines) {
    const std::int64_t lines = std::min(kLines, view.outer - line);
    Sum states[kLines];
    std::fill_n(states, kLines, static_cast<Sum>(first));
    const auto take = [&](std::int64_t l, std::int64_t k) {
      const std::int64_t at = (line + l) * view.size + begin + by * k;
      out[at] = step(states[l], x[at], c[at]);
    };
    if (lines == kLines) {
      for (std::int64_t k = 0; k < view.size; ++k)
        for (std::int64_t l = 0; l < kLines; ++l) take(l, k);
    } else {
      for (std::int64_t l = 0; l < lines; ++l)
        for (std::int64_t k = 0; k < view.size; ++k) take(l, k);
    }
  }
}

/// walk_lines() along any axis, in the order of the walk.
template <class T, class First, class Step>
void walk_axis(const AxisView& view, bool is_reverse, First first, const T* __restrict x,
               const T* __restrict c, T* __restrict out, const Step& step) {
  using Sum = typename StateOf<T, First>::Type;
  const std::int64_t begin = is_reverse ? view.size - 1 : 0, by = is_reverse ? -1 : 1;
  if (view.inner == 1) {
    // Lines a multiple of 4 KiB apart share a set of the first-level cache, which has eight places.
    constexpr std::int64_t kSameSet = 4096 / sizeof(T);
    if (view.size % kSameSet == 0)
      walk_lines<4>(view, is_reverse, first, x, c, out, step);
    else
      walk_lines<8>(view, is_reverse, first, x, c, out, step);
    return;
  }
  std::vector<Sum> states(static_cast<std::size_t>(view.inner));
  for (std::int64_t outer = 0; outer < view.outer; ++outer) {
    states.assign(states.size(), static_cast<Sum>(first));
    Sum* __restrict const state = states.data();
    for (std::int64_t k = 0; k < view.size; ++k) {
      const std::int64_t at = (outer * view.size + begin + by * k) * view.inner;
      for (std::int64_t i = 0; i < view.inner; ++i)
        out[at + i] = step(state[i], x[at + i], c[at + i]);
    }
  }
}

/// Calls walk_axis() for the operands and the result of a kernel.
template <class First, class Step>
void walk(KernelArgs& args, First first, const Step& step) {
  const auto& attrs = args.attr<CumulativeAttrs>();
  const Tensor &x = args.input(0), &c = args.input(args.in.size() - 1);
  const Tensor& out = args.make();
  visit(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>)
      walk_axis(view_axis(x.type(), attrs.axis), attrs.reverse, first, x.data<T>(), c.data<T>(),
                out.data<T>(), step);
  });
}

void cumsum_kernel(KernelArgs& args) {
  if (args.attr<CumulativeAttrs>().exclusive)
    walk(args, 0, []<class Sum, class T>(Sum& sum, T x, T) {
      const T before = static_cast<T>(sum);
      sum += static_cast<Sum>(x);
      return before;
    });
  else
    walk(args, 0, []<class Sum, class T>(Sum& sum, T x, T) {
      return static_cast<T>(sum += static_cast<Sum>(x));
    });
}

void product_before_kernel(KernelArgs& args) {
  walk(args, 1, []<class Sum, class T>(Sum& product, T x, T) {
    const T before = static_cast<T>(product);
    product *= static_cast<Sum>(x);
    return before;
  });
}

void logcumsumexp_kernel(KernelArgs& args) {
  walk(args, LogSum(), []<class T>(LogSum& state, T x, T) {
    state.add(static_cast<double>(x));
    return static_cast<T>(state.value());
  });
}

void recurrence_kernel(KernelArgs& args) {
  walk(args, 0, []<class Sum, class T>(Sum& state, T x, T c) {
    const T before = static_cast<T>(state);
    state = static_cast<Sum>(c) + static_cast<Sum>(x) * state;
    return before;
  });
}

/// Returns exp(a - b) for a <= b; 1 for equal infinities.
Tensor ratio_of_exp(const Tensor& a, const Tensor& b) {
  const Tensor is_infinite = logical_and(equal(a, b), equal(abs(a), kInfinite));
  return exp(where(is_infinite, 0, a - b));
}

/// Returns at each position the row of y before it, and -inf at the first. reverse: from the other
/// end.
Tensor before(const Tensor& y, int axis, bool reverse) {
  return shift(y, scalar(reverse ? 1 : -1, i32), axis, dim_at(y.type(), axis), -kInfinite);
}

/// exclusive: the values of this attribute that the op takes.
OpSamples samples(std::size_t inputs, std::initializer_list<bool> exclusive) {
  const Dim batch("batch", 2), feature("feature", 4);
  const Dim time("time", tensor({3, 1}, {batch}));
  const std::pair<Dims, int> shapes[] = {
      {{5}, 0},    {{2, 3}, 0}, {{2, 3}, 1},           {{2, 3, 4}, 1},
      {{0, 3}, 1}, {{3, 0}, 1}, {{batch, feature}, 0}, {{batch, time, feature}, 2}};
  OpSamples result;
  for (const auto& [dims, axis] : shapes)
    for (const bool is_exclusive : exclusive)
      for (const bool reverse : {false, true})
        result.push_back({std::vector<SampleInput>(inputs, {TensorType(f32, dims), -1.5, 1.5}),
                          make_attrs(CumulativeAttrs{axis, is_exclusive, reverse})});
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
    .samples =
        [] {
          return samples(1, {true, false});
        },
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
    .samples = [] { return samples(1, {true}); },
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
    .samples = [] { return samples(2, {true}); },
    .iteration_batching = axis_across_iterations<CumulativeAttrs>,
    .axes = axes_beside_worked<CumulativeAttrs>,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b10) != 0; },
    .fails = fails_without_memory,
};

// x̄_i = exp(x_i - y_i) r_i for r_i = Σ_{k>=i} ȳ_k exp(y_i - y_k), which is ȳ plus the recurrence
// from the other end: its factors are exp(y_{k-1} - y_k). No exponent is positive.
const Op logcumsumexp_op{
    .name = "logcumsumexp",
    .type = running_float,
    .kernel = logcumsumexp_kernel,
    .vjp =
        [](Vjp& at) {
          const auto& [axis, exclusive, reverse] = at.attr<CumulativeAttrs>();
          const Tensor &x = at.input(0), &y = at.output();
          // A sum of -inf alone has no gradient.
          const Tensor g = where(equal(y, -kInfinite), 0, at.cotangent());
          const Tensor factor = ratio_of_exp(before(y, axis, reverse), y);
          const Tensor later = bind(recurrence_op, {factor, factor * g}, along(axis, !reverse));
          at.add(0, ratio_of_exp(x, y) * (g + later));
        },
    .reads = {.inputs = 1, .outputs = 1},
    .samples = [] { return samples(1, {false}); },
    .iteration_batching = axis_across_iterations<CumulativeAttrs>,
    .axes = axes_beside_worked<CumulativeAttrs>,
    .fails = fails_without_memory,
};

Tensor product_before(const Tensor& x, int axis, bool reverse) {
  return bind(product_before_op, {x}, along(axis, reverse));
}

Tensor cumsum(const Tensor& x, const Axis& axis, Cumulative how) {
  check_number("cumsum", x, kCastToInteger);
  const int at = axis.in(x, "cumsum");
  const Tensor sums = bind(cumsum_op, {without_padding(x, {at}, 0.)},
                           make_attrs(CumulativeAttrs{at, how.exclusive, how.reverse}));
  return without_padding(sums, {at}, 0.);
}

Tensor cumprod(const Tensor& x, const Axis& axis, Cumulative how) {
  check_number("cumprod", x, kCastToInteger);
  const int at = axis.in(x, "cumprod");
  const Tensor clean = apart_from(x, {at}, without_padding(x, {at}, 1.));
  const Tensor before = product_before(clean, at, how.reverse);
  return without_padding(how.exclusive ? before : before * clean, {at}, 0.);
}

Tensor logcumsumexp(const Tensor& x, const Axis& axis, Cumulative how) {
  check_float("logcumsumexp", x, kNeedsFloat);
  const int at = axis.in(x, "logcumsumexp");
  const Tensor sums = bind(logcumsumexp_op, {without_padding(x, {at}, -kInfinite)},
                           make_attrs(CumulativeAttrs{at, false, how.reverse}));
  return without_padding(how.exclusive ? before(sums, at, how.reverse) : sums, {at}, 0.);
}

namespace {
const Op* const kCumulativeOps[] = {&cumsum_op, &product_before_op, &recurrence_op,
                                    &logcumsumexp_op};
}
std::span<const Op* const> cumulative_ops() { return kCumulativeOps; }

}  // namespace reel
