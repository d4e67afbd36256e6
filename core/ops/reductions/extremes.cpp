// Largest and smallest elements, and their positions.
#include <limits>

#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/types/sizes.h"

namespace reel {

NestedList lowest(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return std::numeric_limits<std::int32_t>::min();
    case DType::i64:
      return std::numeric_limits<std::int64_t>::min();
    case DType::boolean:
      return false;
    default:
      return -std::numeric_limits<double>::infinity();
  }
}

namespace {

constexpr std::string_view kAnyInstead = "use any", kAllInstead = "use all",
                           kCastMax = "cast it, as in argmax(cast(x, i32), axis)",
                           kCastMin = "cast it, as in argmin(cast(x, i32), axis)",
                           kCastAllMax = "cast it, as in argmax(cast(x, i32))",
                           kCastAllMin = "cast it, as in argmin(cast(x, i32))";

/// Returns the value of min over no elements.
NestedList highest(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return std::numeric_limits<std::int32_t>::max();
    case DType::i64:
      return std::numeric_limits<std::int64_t>::max();
    default:
      return std::numeric_limits<double>::infinity();
  }
}

}  // namespace

std::optional<NestedList> neutral_number(const Op& op, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op.neutral) {
    case Neutral::zero:
      return NestedList(0.);
    case Neutral::lowest:
      return lowest(dtype);
    case Neutral::highest:
      return highest(dtype);
    case Neutral::minus_infinity:
      return NestedList(-kInfinity);
    case Neutral::none:
      return std::nullopt;
  }
  return std::nullopt;
}

namespace {

// Ties share the gradient; if NaN is the result, all NaN share it. If padding might be read, x is
// masked with the value of an empty reduction. All places of an empty row are then ties; the public
// sum counts the valid ones.
void extreme_vjp(Vjp& at) {
  const std::vector<int>& axes = at.attr<ReduceAttrs>().axes;
  const TensorType& type = at.input_type(0);
  if (!is_float(type.dtype())) return;
  const Tensor& x = at.input(0);
  const Tensor is_chosen = logical_or(equal(x, broadcastable(at.output(), axes, type)), isnan(x));
  const Tensor ties = sum(cast(is_chosen, type.dtype()), axes_of(axes));
  const Tensor share = at.cotangent() / maximum(ties, 1);
  at.add(0, where(is_chosen, spread_like(share, axes, type), 0));
}

constexpr Op extreme(std::string_view name, TypeRule type, OpKernel kernel, Neutral neutral) {
  return Op{
      .name = name,
      .type = type,
      .kernel = kernel,
      .storage = OpStorage::input,
      .vjp = extreme_vjp,
      .reads = {.inputs = 1, .outputs = 1},
      .samples = [] { return reduction_samples(f32, -2, 2, false); },
      .iteration_batching = axes_across_iterations,
      .axes = reduced_axes_as<Role::unordered>,
      .fails = reduction_fails,
      .padding = Padding::dropped,
      .neutral = neutral,
      .makes_view = keeps_count,
  };
}

template <ReductionLoop (ReductionTable::*kLoops)[5]>
void position_kernel(KernelArgs& args) {
  const Tensor& x = args.input(0);
  (reduction_table().*kLoops)[static_cast<int>(x.dtype())](
      x.data<void>(), args.make().data<void>(), view_axes(x.type(), args.attr<ReduceAttrs>().axes));
}
constexpr Op position(std::string_view name, TypeRule type, OpKernel kernel, Neutral neutral) {
  return Op{
      .name = name,
      .type = type,
      .kernel = kernel,
      .no_vjp = "positions are integers",
      .samples = [] { return one_axis_samples(f32, -2, 2, true); },
      .iteration_batching = axes_across_iterations,
      .axes = reduced_axes,
      .fails = never_fails,
      .padding = Padding::dropped,
      .neutral = neutral,
  };
}

template <const std::string_view& kRepair>
void extreme_rule(TypeArgs& a) {
  check_number(a.op.name, a.in[0], kRepair);
  reduced_rule(a);
}
template <const std::string_view& kRepair>
void position_rule(TypeArgs& a) {
  check_number(a.op.name, a.in[0], kRepair);
  for (const int axis : a.attr<ReduceAttrs>().axes) check_positions_fit(a.op.name, a.in[0], axis);
  a.out.push_back(reduced_type(a.in[0], a.attr<ReduceAttrs>().axes).with(i32));
}

}  // namespace

constinit const Op max_op = extreme("max", extreme_rule<kAnyInstead>,
                                    reduction_kernel<&ReductionTable::max>, Neutral::lowest);
constinit const Op min_op = extreme("min", extreme_rule<kAllInstead>,
                                    reduction_kernel<&ReductionTable::min>, Neutral::highest);
constinit const Op argmax_op = position("argmax", position_rule<kCastMax>,
                                        position_kernel<&ReductionTable::argmax>, Neutral::lowest);
constinit const Op argmin_op = position("argmin", position_rule<kCastMin>,
                                        position_kernel<&ReductionTable::argmin>, Neutral::highest);

Tensor max(const Tensor& x, const Axes& axes, Keep keep) {
  check_number("max", x, kAnyInstead);
  return over("max", x, axes, keep,
              [&](const auto& at) { return reduce(max_op, x, at, lowest(x.dtype())); });
}
Tensor max(const Tensor& x) { return max(x, axes_of(all_positions("max", x))); }
Tensor min(const Tensor& x, const Axes& axes, Keep keep) {
  check_number("min", x, kAllInstead);
  return over("min", x, axes, keep,
              [&](const auto& at) { return reduce(min_op, x, at, highest(x.dtype())); });
}
Tensor min(const Tensor& x) { return min(x, axes_of(all_positions("min", x))); }
Tensor argmax(const Tensor& x, const Axis& axis, Keep keep) {
  check_number("argmax", x, kCastMax);
  return over("argmax", x, {axis}, keep,
              [&](const auto& at) { return reduce(argmax_op, x, at, lowest(x.dtype())); });
}
Tensor argmin(const Tensor& x, const Axis& axis, Keep keep) {
  check_number("argmin", x, kCastMin);
  return over("argmin", x, {axis}, keep,
              [&](const auto& at) { return reduce(argmin_op, x, at, highest(x.dtype())); });
}

namespace {

/// Returns the first position of x, in row-major order, that holds its extreme.
Tensor position_of(const Op& op, const Tensor& x, const Tensor& extreme) {
  if (x.rank() == 0) return full({}, 0, i32);
  if (!x.type().is_ragged()) return bind(op, {reshape(x, {-1})}, reduce_attrs({0}));
  const Tensor is_extreme = mask_padding(logical_or(equal(x, extreme), isnan(x)), false);
  return bind(argmax_op, {reshape(cast(is_extreme, i32), {-1})}, reduce_attrs({0}));
}

}  // namespace

Tensor argmax(const Tensor& x) {
  check_number("argmax", x, kCastAllMax);
  return position_of(argmax_op, x, x.type().is_ragged() ? max(x) : Tensor());
}
Tensor argmin(const Tensor& x) {
  check_number("argmin", x, kCastAllMin);
  return position_of(argmin_op, x, x.type().is_ragged() ? min(x) : Tensor());
}

}  // namespace reel
