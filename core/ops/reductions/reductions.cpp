// Sums and products, any and all.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/cumulative.h"
#include "reel/core/ops/reductions/norm.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {

namespace {

// ---- sum and spread -----------------------------------------------------------------------------

void spread_rule(TypeArgs& a) {
  const SpreadAttrs& attrs = a.attr<SpreadAttrs>();
  Dims dims = a.in[0].dims();
  for (std::size_t i = 0; i < attrs.axes.size(); ++i) {
    if (attrs.axes[i] > static_cast<int>(dims.size())) refuse_axis(a.in[0], attrs.axes[i] - 1);
    dims.insert(dims.begin() + attrs.axes[i], attrs.dims[i]);
  }
  a.out.push_back(a.in[0].with(dims));
}

void spread_kernel(KernelArgs& args) {
  const Tensor& x = args.input(0);
  if (x.type().numel() == args.types[0].numel()) {
    args.alias(0, 0);
    return;
  }
  const Tensor& out = args.make();
  const std::vector<int>& added = args.attr<SpreadAttrs>().axes;
  const Steps to = steps_of(out.type()), from = steps_of(x.type());
  StridedAxes axes;
  std::size_t next = 0;
  for (int i = 0; i < out.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    axes.push_back({out.type().sizes()[at], to[at], has(added, i) ? 0 : from[next++]});
  }
  copy_strided(size_of(x.dtype()), axes, out.data<void>(), x.data<void>());
}

void spread_axes(const OpCall& call, AxisFactors& f) {
  int next = 0;
  for (int axis = 0; axis < call.out[0].rank(); ++axis)
    if (has(call.attr<SpreadAttrs>().axes, axis))
      f.out(0, axis) = f.add(Role::repeated);
    else
      f.in(0, next++) = axis;
}

Tensors spread_across_iterations(const IterationBatch& at) {
  SpreadAttrs attrs = at.attr<SpreadAttrs>();
  attrs.axes = behind_time(attrs.axes);
  return {bind(at.op, {at.in[0]}, make_attrs(std::move(attrs)))};
}

}  // namespace

const Op spread_op{
    .name = "spread",
    .type = spread_rule,
    .kernel = spread_kernel,
    .storage = OpStorage::input,
    .vjp = [](Vjp& at) { at.add(0, sum(at.cotangent(), axes_of(at.attr<SpreadAttrs>().axes))); },
    .samples =
        [] {
          const auto sample = [](const Dims& x, std::vector<int> axes, const Dims& dims) {
            return OpSample{{{TensorType(f32, x)}}, make_attrs(SpreadAttrs{std::move(axes), dims})};
          };
          static const auto& batch = *new Dim("batch", 2);
          static const auto& time = *new Dim("time", tensor({3, 1}, {batch}));
          static const auto& feature = *new Dim("feature", 4);
          return OpSamples{sample({}, {0}, {3}),
                           sample({3}, {0}, {2}),
                           sample({3}, {1}, {2}),
                           sample({2, 3}, {1, 3}, {4, 5}),
                           sample({2, 3}, {2}, {1}),
                           sample({3}, {0}, {0}),
                           sample({batch}, {0}, {feature}),
                           sample({feature}, {0, 1}, {batch, time})};
        },
    .iteration_batching = spread_across_iterations,
    .axes = spread_axes,
    .fails = never_fails,
    .padding = Padding::apart,
    .makes_view = keeps_count,
};

namespace {

constexpr std::string_view kCountInstead = "cast it, as in sum(cast(x, i32))",
                           kAllInsteadOfProd = "use all";

}  // namespace

// x̄ is ȳ along every axis that was summed over.
const Op sum_op{
    .name = "sum",
    .type =
        [](TypeArgs& a) {
          check_number(a.op.name, a.in[0], kCountInstead);
          reduced_rule(a);
        },
    .kernel = reduction_kernel<&ReductionTable::sum>,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          at.add(0, spread_like(at.cotangent(), at.attr<ReduceAttrs>().axes, at.input_type(0)));
        },
    .samples = [] { return reduction_samples(f32, -2, 2, true); },
    .iteration_batching = reduction_across_iterations,
    .gains_from_batching = true,
    .axes = reduced_axes_as<Role::summed>,
    .fails = reduction_fails,
    .padding = Padding::dropped,
    .neutral = Neutral::zero,
    .makes_view = keeps_count,
};

// ---- prod ---------------------------------------------------------------------------------------

namespace {

/// Multiplies, for each element, all other elements along the axes: the elements before it times
/// the elements after it. Does not divide, so that zeros do no harm.
Tensor prod_gradient(const Tensor& x, const Tensor& g, std::vector<int> axes) {
  if (axes.empty()) return g;
  const int last = axes.back();
  axes.pop_back();
  const Tensor outer =
      axes.empty() ? g : prod_gradient(bind(prod_op, {x}, reduce_attrs({last})), g, axes);
  return product_before(x, last, false) * product_before(x, last, true) *
         broadcastable(outer, {last}, x.type());
}

}  // namespace

const Op prod_op{
    .name = "prod",
    .type =
        [](TypeArgs& a) {
          check_number(a.op.name, a.in[0], kAllInsteadOfProd);
          reduced_rule(a);
        },
    .kernel = reduction_kernel<&ReductionTable::prod>,
    .storage = OpStorage::input,
    .vjp =
        [](Vjp& at) {
          at.add(0, prod_gradient(at.input(0), at.cotangent(), at.attr<ReduceAttrs>().axes));
        },
    .reads = {.inputs = 1},
    .samples = [] { return reduction_samples(f32, -1.5, 1.5, true); },
    .iteration_batching = axes_across_iterations,
    .axes = reduced_axes,
    .fails = reduction_fails,
    .padding = Padding::dropped,
    .makes_view = keeps_count,
};

// ---- any and all --------------------------------------------------------------------------------

namespace {

template <ReductionLoop ReductionTable::*kLoop>
void truth_kernel(KernelArgs& args) {
  run_reduction(args, reduction_table().*kLoop);
}

void truth_rule(TypeArgs& a) {
  if (a.in[0].dtype() != boolean)
    throw DTypeError(
        str(a.op.name, ": takes booleans, got ", a.in[0], "; compare first, as in x != 0"));
  reduced_rule(a);
}
}  // namespace

const Op any_op{
    .name = "any",
    .type = truth_rule,
    .kernel = truth_kernel<&ReductionTable::any>,
    .storage = OpStorage::input,
    .no_vjp = "booleans have no gradient",
    .samples = [] { return reduction_samples(boolean, 0, 1, true); },
    .iteration_batching = axes_across_iterations,
    .axes = reduced_axes_as<Role::unordered>,
    .fails = reduction_fails,
    .padding = Padding::dropped,
    .makes_view = keeps_count,
};
const Op all_op{
    .name = "all",
    .type = truth_rule,
    .kernel = truth_kernel<&ReductionTable::all>,
    .storage = OpStorage::input,
    .no_vjp = "booleans have no gradient",
    .samples = [] { return reduction_samples(boolean, 0, 1, true); },
    .iteration_batching = axes_across_iterations,
    .axes = reduced_axes_as<Role::unordered>,
    .fails = reduction_fails,
    .padding = Padding::dropped,
    .makes_view = keeps_count,
};

// ---- Public functions ---------------------------------------------------------------------------

Tensor sum(const Tensor& x, const Axes& axes, Keep keep) {
  return over("sum", x, axes, keep, [&](const auto& at) { return reduce(sum_op, x, at, 0.); });
}
Tensor sum(const Tensor& x) { return reduce(sum_op, x, all_positions("sum", x), 0.); }
Tensor prod(const Tensor& x, const Axes& axes, Keep keep) {
  check_number("prod", x, kAllInsteadOfProd);
  return over("prod", x, axes, keep, [&](const auto& at) { return reduce(prod_op, x, at, 1.); });
}
Tensor prod(const Tensor& x) { return prod(x, axes_of(all_positions("prod", x))); }
Tensor any(const Tensor& x, const Axes& axes, Keep keep) {
  return over("any", x, axes, keep, [&](const auto& at) { return reduce(any_op, x, at, 0.); });
}
Tensor any(const Tensor& x) { return reduce(any_op, x, all_positions("any", x), 0.); }
Tensor all(const Tensor& x, const Axes& axes, Keep keep) {
  return over("all", x, axes, keep, [&](const auto& at) { return reduce(all_op, x, at, 1.); });
}
Tensor all(const Tensor& x) { return reduce(all_op, x, all_positions("all", x), 1.); }

namespace {
const Op* const kReductionOps[] = {
    &sum_op, &spread_op, &prod_op,      &max_op,       &min_op,     &argmax_op,      &argmin_op,
    &any_op, &all_op,    &axes_size_op, &logsumexp_op, &softmax_op, &log_softmax_op, &norm_op};
}  // namespace
std::span<const Op* const> reduction_ops() { return kReductionOps; }

}  // namespace reel
