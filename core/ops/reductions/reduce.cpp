// Code that reductions share: axes, type rules, kernels, batching, samples, and spread().
#include <algorithm>
#include <array>
#include <memory>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/reductions/cumulative.h"
#include "reel/core/ops/reductions/norm.h"
#include "reel/core/ops/reductions/reduce.h"
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

}  // namespace reel
