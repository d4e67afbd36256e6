// Sums and products, any and all, and code that all reductions share.
#include <algorithm>
#include <array>
#include <memory>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/reductions/cumulative.h"
#include "reel/core/ops/reductions/norm.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {

const ReductionTable& reduction_table() {
  static const ReductionTable& chosen = for_this_processor(REEL_TABLES(reductions));
  return chosen;
}

// ---- Axes ---------------------------------------------------------------------------------------

AttrsRef reduce_attrs(const std::vector<int>& axes) {
  constexpr int kBits = 6;
  static const auto& common = *[] {
    auto* made = new std::array<AttrsRef, 1 << kBits>;
    for (unsigned set = 0; set < made->size(); ++set) {
      ReduceAttrs attrs;
      for (int axis = 0; axis < kBits; ++axis)
        if (set >> axis & 1) attrs.axes.push_back(axis);
      (*made)[set] = make_attrs(std::move(attrs));
    }
    return made;
  }();
  unsigned set = 0;
  for (int axis : axes) {
    if (axis >= kBits) return make_attrs(ReduceAttrs{axes});
    set |= 1u << axis;
  }
  return common[set];
}

std::vector<int> positions(const Tensor& x, const Axes& axes, std::string_view op) {
  std::vector<int> result = axes.in(x, op);
  std::sort(result.begin(), result.end());
  return result;
}
std::vector<int> all_positions(std::string_view op, const Tensor& x) {
  check_defined(op, x);
  std::vector<int> result(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int>(i);
  return result;
}

Tensor without_padding(const Tensor& x, const std::vector<int>& axes, const NestedList& value) {
  return reduces_padding(x.type(), axes) ? mask_padding(x, value) : x;
}
Tensor reduce(const Op& op, const Tensor& x, const std::vector<int>& axes,
              const NestedList& neutral) {
  return bind(op, {without_padding(x, axes, neutral)}, reduce_attrs(axes));
}

void check_float(std::string_view op, const TensorType& x, std::string_view repair) {
  if (!is_float(x.dtype())) throw DTypeError(str(op, ": takes floats, got ", x, "; ", repair));
}

void check_number(std::string_view op, const TensorType& x, std::string_view repair) {
  if (x.dtype() == boolean) throw DTypeError(str(op, ": takes numbers, got ", x, "; ", repair));
}

void check_float(std::string_view op, const Tensor& x, std::string_view repair) {
  check_defined(op, x);
  check_float(op, x.type(), repair);
}
void check_number(std::string_view op, const Tensor& x, std::string_view repair) {
  check_defined(op, x);
  check_number(op, x.type(), repair);
}

Reduced view_axes(const TensorType& x, const std::vector<int>& axes) {
  Reduced result{1, 1, 1};
  const int first = axes.empty() ? x.rank() : axes.front(),
            last = axes.empty() ? first - 1 : axes.back();
  for (int i = 0; i < x.rank(); ++i)
    (i < first  ? result.outer
     : i > last ? result.inner
                : result.n) *= x.sizes()[static_cast<std::size_t>(i)];
  return result;
}

bool has(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}
Axes axes_of(const std::vector<int>& positions) {
  return Axes(std::vector<Axis>(positions.begin(), positions.end()));
}

void check_may_keep(std::string_view op, const TensorType& x) {
  if (x.is_named())
    throw ArgumentError(str(op, ": Keep::yes is for plain dims, got ", x,
                            ", whose dims broadcast by name; leave it out"));
}

TensorType reduced_type(const TensorType& x, const std::vector<int>& axes) {
  check_axes(x, axes);
  Dims dims;
  for (int i = 0; i < x.rank(); ++i)
    if (!has(axes, i)) dims.push_back(x.dims()[static_cast<std::size_t>(i)]);
  return x.with(dims);
}

void reduced_rule(TypeArgs& a) {
  a.out.push_back(reduced_type(a.in[0], a.attr<ReduceAttrs>().axes));
}

namespace {

Dims dims_at(const TensorType& type, const std::vector<int>& axes) {
  Dims result;
  for (int axis : axes) result.push_back(type.dims()[static_cast<std::size_t>(axis)]);
  return result;
}

/// Neighbouring axes that are all reduced, or all kept, merged into one.
struct Group {
  std::int64_t size;
  bool is_reduced;
};
bool are_neighbours(const std::vector<int>& axes) {
  return !axes.empty() && std::is_sorted(axes.begin(), axes.end()) &&
         axes.back() - axes.front() + 1 == static_cast<int>(axes.size());
}
std::vector<Group> group(const TensorType& x, const std::vector<int>& axes) {
  std::vector<Group> groups;
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t size = x.sizes()[static_cast<std::size_t>(i)];
    if (size == 1) continue;
    const bool is_reduced = has(axes, i);
    if (!groups.empty() && groups.back().is_reduced == is_reduced)
      groups.back().size *= size;
    else
      groups.push_back({size, is_reduced});
  }
  return groups;
}

}  // namespace

Tensors reduction_across_iterations(const IterationBatch& at) {
  std::vector<int> axes = behind_time(at.attr<ReduceAttrs>().axes);
  if (at.is_summed) axes.insert(axes.begin(), 0);
  return {bind(at.op, {at.in[0]}, reduce_attrs(axes))};
}

Tensors axes_across_iterations(const IterationBatch& at) {
  return {bind(at.op, {at.in[0]}, reduce_attrs(behind_time(at.attr<ReduceAttrs>().axes)))};
}

namespace {
/// Elements behind a reduced axis are adjacent, and the kernel walks several beside each other: how
/// many there are may change their bits.
void set_alike_beside(const std::vector<int>& reduced, AxisFactors& f, int rank) {
  for (int axis = reduced.empty() ? rank : reduced[0] + 1; axis < rank; ++axis)
    if (f.in(0, axis) >= 0) f.set_alike(f.in(0, axis), never_alike);
}
}  // namespace

void reduced_axes(const OpCall& call, AxisFactors& f) {
  const std::vector<int>& reduced = call.attr<ReduceAttrs>().axes;
  int next = 0;
  for (int axis = 0; axis < call.in[0].rank(); ++axis)
    if (!has(reduced, axis)) f.in(0, axis) = next++;
  set_alike_beside(reduced, f, call.in[0].rank());
}
void axes_beside_reduced(const OpCall& call, AxisFactors& f) {
  const std::vector<int>& worked = call.attr<ReduceAttrs>().axes;
  same_axes(call, f);
  for (const int axis : worked) f.in(0, axis) = AxisFactors::kWhole;
  set_alike_beside(worked, f, call.in[0].rank());
}

Failures reduction_fails(const Attrs* attrs) {
  // Axes that are no neighbours need scratch memory.
  return {0, !are_neighbours(get<ReduceAttrs>(attrs).axes)};
}
bool keeps_count(const OpCall& call) { return call.in[0].numel() == call.out[0].numel(); }

void run_reduction(KernelArgs& args, ReductionLoop loop) {
  const TensorType& x = args.input(0).type();
  const std::vector<int>& axes = args.attr<ReduceAttrs>().axes;
  if (are_neighbours(axes)) {  // allocates no memory: loops do this in every step
    const Reduced sizes = view_axes(x, axes);
    if (sizes.n == 1)
      args.alias(0, 0);
    else
      loop(args.input(0).data<void>(), args.make().data<void>(), sizes);
    return;
  }
  std::vector<Group> groups = group(x, axes);
  const auto count = [&] {
    return std::count_if(groups.begin(), groups.end(), [](const Group& g) { return g.is_reduced; });
  };
  if (count() == 0) {  // reduced axes have one element each
    args.alias(0, 0);
    return;
  }
  const void* from = args.input(0).data<void>();
  void* const out = args.make().data<void>();
  std::unique_ptr<char[]> before;
  while (true) {
    auto last = groups.end();
    while (!(--last)->is_reduced) {
    }
    Reduced sizes{1, last->size, 1};
    for (auto it = groups.begin(); it != groups.end(); ++it)
      if (it != last) (it < last ? sizes.outer : sizes.inner) *= it->size;
    if (count() == 1) return loop(from, out, sizes);
    std::unique_ptr<char[]> next(
        new char[static_cast<std::size_t>(sizes.outer * sizes.inner) * size_of(x.dtype())]);
    loop(from, next.get(), sizes);
    before = std::move(next);
    from = before.get();
    groups.erase(last);
  }
}

namespace {

template <ReductionLoop ReductionTable::*kLoop>
void truth_kernel(KernelArgs& args) {
  run_reduction(args, reduction_table().*kLoop);
}

struct ReducedDims {
  Dim batch{"batch", 2}, time{"time", tensor({3, 1}, {batch})}, feature{"feature", 4};
};
const ReducedDims& reduced_dims() {
  static const ReducedDims& dims = *new ReducedDims;
  return dims;
}

}  // namespace

OpSamples reduction_samples(DType dtype, double low, double high, bool over_nothing) {
  const auto sample = [&](const Dims& dims, const std::vector<int>& axes) {
    return OpSample{{{TensorType(dtype, dims), low, high, is_float(dtype)}}, reduce_attrs(axes)};
  };
  const auto& [batch, time, feature] = reduced_dims();
  OpSamples result = {sample({7}, {0}),
                      sample({2, 3}, {0}),
                      sample({2, 3}, {1}),
                      sample({3, 40}, {1}),
                      sample({2, 3}, {0, 1}),
                      sample({2, 3, 4}, {1}),
                      sample({2, 3, 4}, {0, 2}),
                      sample({2, 1, 4}, {1}),
                      sample({0, 3}, {1}),
                      sample({batch, feature}, {0}),
                      sample({batch, time, feature}, {2})};
  if (over_nothing) result.push_back(sample({3, 0}, {1}));
  return result;
}
OpSamples one_axis_samples(DType dtype, double low, double high, bool over_nothing) {
  OpSamples result = reduction_samples(dtype, low, high, over_nothing);
  std::erase_if(result, [](const OpSample& sample) {
    return get<ReduceAttrs>(sample.attrs.get()).axes.size() != 1;
  });
  return result;
}

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
          const auto& [batch, time, feature] = reduced_dims();
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

Tensor spread(const Tensor& x, const std::vector<int>& axes, const Dims& dims) {
  return bind(spread_op, {x}, make_attrs(SpreadAttrs{axes, canonical(dims)}));
}
Tensor spread_like(const Tensor& y, const std::vector<int>& axes, const TensorType& x) {
  return axes.empty() ? y : spread(y, axes, dims_at(x, axes));
}
Tensor broadcastable(const Tensor& y, const std::vector<int>& axes, const TensorType& x) {
  // Named dims are matched by identity. Plain dims need axes of size 1, unless only leading axes
  // are missing.
  if (x.is_named() || axes.empty() || axes.back() == static_cast<int>(axes.size()) - 1) return y;
  return spread(y, axes, Dims(axes.size(), Dim(1)));
}

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
