// Reductions, positions of extreme elements, running sums.
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

using Reduce = Tensor (*)(const Tensor&, const Axes&, Keep);

/// Returns the axes of a reduction: an attribute, or an input from version 18 on (ReduceSum: 13).
Axes axes_of(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::vector<std::int64_t> given = call.integers("axes");
  if (call.has(1)) given = call.known_integers(1);
  std::vector<Axis> axes;
  for (const std::int64_t axis : given) axes.emplace_back(call.axis_in(axis, x.rank()));
  if (axes.empty() && !call.flag("noop_with_empty_axes", false))
    for (int axis = 0; axis < x.rank(); ++axis) axes.emplace_back(axis);
  return Axes(axes);
}

template <class Fn>
Values reduced(const Call& call, Fn fn) {
  const Keep keep = call.flag("keepdims", true) ? Keep::yes : Keep::no;
  return {call.stored_like(0, fn(call.tensor(0), axes_of(call), keep))};
}

template <Reduce fn>
Values run_reduce(const Call& call) {
  return reduced(call,
                 [](const Tensor& x, const Axes& axes, Keep keep) { return fn(x, axes, keep); });
}
/// Extremes of booleans: true is above false.
template <Reduce fn, Reduce of_booleans>
Values run_extreme(const Call& call) {
  return reduced(call, [](const Tensor& x, const Axes& axes, Keep keep) {
    return x.dtype() == boolean ? of_booleans(x, axes, keep) : fn(x, axes, keep);
  });
}
Values run_reduce_l1(const Call& call) {
  return reduced(
      call, [](const Tensor& x, const Axes& axes, Keep keep) { return sum(abs(x), axes, keep); });
}
/// The square root of integers is computed in f64, and truncated.
Values run_reduce_l2(const Call& call) {
  return reduced(call, [](const Tensor& x, const Axes& axes, Keep keep) {
    const Tensor squares = sum(square(x), axes, keep);
    if (is_float(x.dtype())) return sqrt(squares);
    return cast(sqrt(cast(squares, f64)), x.dtype());
  });
}
Values run_reduce_log_sum(const Call& call) {
  return reduced(
      call, [](const Tensor& x, const Axes& axes, Keep keep) { return log(sum(x, axes, keep)); });
}
Values run_reduce_sum_square(const Call& call) {
  return reduced(call, [](const Tensor& x, const Axes& axes, Keep keep) {
    return sum(square(x), axes, keep);
  });
}
/// The mean of integers is truncated.
Values run_reduce_mean(const Call& call) {
  return reduced(call, [](const Tensor& x, const Axes& axes, Keep keep) {
    if (is_float(x.dtype())) return mean(x, axes, keep);
    return cast(mean(cast(x, f64), axes, keep), x.dtype());
  });
}

template <Tensor (*fn)(const Tensor&, const Axis&, Keep)>
Values run_position(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis(0);
  const Keep keep = call.flag("keepdims", true) ? Keep::yes : Keep::no;
  if (!call.flag("select_last_index", false)) return {Value::of(cast(fn(x, axis, keep), i64))};
  const Tensor from_end = cast(fn(reverse(x, axis), axis, keep), i64);
  return {Value::of(x.dim(axis).size() - 1 - from_end)};
}

template <Tensor (*fn)(const Tensor&, const Axis&, Cumulative)>
Values run_cumulative(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis_in(call.known_integer(1), x.rank());
  return {call.stored_like(
      0, fn(x, axis, {call.flag("exclusive", false), call.flag("reverse", false)}))};
}

const Rule kRules[] = {
    {"ArgMax", run_position<argmax>},
    {"ArgMin", run_position<argmin>},
    with_numbers({1}, {"CumProd", run_cumulative<cumprod>, "", 26}),
    with_numbers({1}, {"CumSum", run_cumulative<cumsum>, "", 11}),
    with_numbers({1}, {"ReduceL1", run_reduce_l1}),
    with_numbers({1}, {"ReduceL2", run_reduce_l2}),
    with_numbers({1}, {"ReduceLogSum", run_reduce_log_sum}),
    with_numbers({1}, {"ReduceLogSumExp", run_reduce<logsumexp>}),
    with_numbers({1}, {"ReduceMax", run_extreme<max, any>}),
    with_numbers({1}, {"ReduceMean", run_reduce_mean}),
    with_numbers({1}, {"ReduceMin", run_extreme<min, all>}),
    with_numbers({1}, {"ReduceProd", run_reduce<prod>}),
    with_numbers({1}, {"ReduceSum", run_reduce<sum>}),
    with_numbers({1}, {"ReduceSumSquare", run_reduce_sum_square}),
};

}  // namespace

std::span<const Rule> reduction_rules() { return kRules; }

}  // namespace reel::imported
