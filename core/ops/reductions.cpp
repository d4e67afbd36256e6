// Sums, means, largest elements, and what is true of any or all.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "reel/core/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/dims.h"
#include "reel/core/ops/isa.h"
#include "reel/core/ops/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/strided.h"
#include "reel/core/str.h"
#include "reel/core/vjp.h"

namespace reel {

const ReductionTable& reduction_table() {
  static const ReductionTable& chosen =
      for_this_processor(sse42::reductions, avx2::reductions, avx512::reductions);
  return chosen;
}

// ---- Axes
// ----------------------------------------------------------------------------------------------------------

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
  std::vector<int> result = axes.in(x.type(), op);
  std::sort(result.begin(), result.end());
  return result;
}
std::vector<int> all_positions(const Tensor& x) {
  std::vector<int> result(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int>(i);
  return result;
}

Tensor without_padding(const Tensor& x, const std::vector<int>& axes, double value) {
  return reduces_padding(x.type(), axes) ? mask_padding(x, value) : x;
}

void check_float(std::string_view op, const TensorType& x, std::string_view repair) {
  if (!is_float(x.dtype())) throw DTypeError(str(op, ": takes floats, got ", x, "; ", repair));
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

namespace {

bool has(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Dims dims_at(const TensorType& type, const std::vector<int>& axes) {
  Dims result;
  for (int axis : axes) result.push_back(type.dims()[static_cast<std::size_t>(axis)]);
  return result;
}

TensorType reduced_type(const TensorType& x, const std::vector<int>& axes) {
  Dims dims;
  for (int i = 0; i < x.rank(); ++i)
    if (!has(axes, i)) dims.push_back(x.dims()[static_cast<std::size_t>(i)]);
  return x.with(dims);
}

void reduced_rule(TypeArgs& a) {
  a.out.push_back(reduced_type(a.in[0], a.attr<ReduceAttrs>().axes));
}

/// Neighbouring axes that are all reduced, or all kept, taken as one.
struct Group {
  std::int64_t size;
  bool is_reduced;
};
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

/// Reduces one group of axes after the other, the last first.
void run_reduction(KernelArgs& args, ReductionLoop loop) {
  const TensorType& x = args.input(0).type();
  std::vector<Group> groups = group(x, args.attr<ReduceAttrs>().axes);
  const auto count = [&] {
    return std::count_if(groups.begin(), groups.end(), [](const Group& g) { return g.is_reduced; });
  };
  if (count() == 0) {  // what is reduced has one element each
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

template <ReductionLoop (ReductionTable::*kLoops)[5]>
void reduction_kernel(KernelArgs& args) {
  run_reduction(args, (reduction_table().*kLoops)[static_cast<int>(args.input(0).dtype())]);
}
template <ReductionLoop ReductionTable::*kLoop>
void truth_kernel(KernelArgs& args) {
  run_reduction(args, reduction_table().*kLoop);
}

struct SampleDims {
  Dim batch{"batch", 2}, time{"time", tensor({3, 1}, {batch})}, feature{"feature", 4};
};
const SampleDims& sample_dims() {
  static const SampleDims& dims = *new SampleDims;
  return dims;
}

/// Shapes for any reduction; integers and booleans lie between low and high.
OpSamples samples_of(DType dtype, double low, double high, bool over_nothing) {
  const auto sample = [&](const Dims& dims, const std::vector<int>& axes) {
    return OpSample{{{TensorType(dtype, dims), low, high, is_float(dtype)}}, reduce_attrs(axes)};
  };
  const auto& [batch, time, feature] = sample_dims();
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

// ---- sum and spread
// ------------------------------------------------------------------------------------------------

struct SpreadAttrs {
  std::vector<int> axes;  ///< of the result, ascending
  Dims dims;              ///< what they are
  template <class F>
  static void fields(F&& f) {
    f("axes", &SpreadAttrs::axes);
    f("dims", &SpreadAttrs::dims);
  }
};

void spread_rule(TypeArgs& a) {
  const SpreadAttrs& attrs = a.attr<SpreadAttrs>();
  Dims dims = a.in[0].dims();
  for (std::size_t i = 0; i < attrs.axes.size(); ++i)
    dims.insert(dims.begin() + attrs.axes[i], attrs.dims[i]);
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

const Op spread_op{
    .name = "spread",
    .type = spread_rule,
    .kernel = spread_kernel,
    .vjp =
        [](Vjp& at) {
          const std::vector<int>& axes = at.attr<SpreadAttrs>().axes;
          at.add(0, sum(at.cotangent(), Axes(std::vector<Axis>(axes.begin(), axes.end()))));
        },
    .samples =
        [] {
          const auto sample = [](const Dims& x, std::vector<int> axes, const Dims& dims) {
            return OpSample{{{TensorType(f32, x)}}, make_attrs(SpreadAttrs{std::move(axes), dims})};
          };
          const auto& [batch, time, feature] = sample_dims();
          return OpSamples{sample({}, {0}, {3}),
                           sample({3}, {0}, {2}),
                           sample({3}, {1}, {2}),
                           sample({2, 3}, {1, 3}, {4, 5}),
                           sample({2, 3}, {2}, {1}),
                           sample({3}, {0}, {0}),
                           sample({batch}, {0}, {feature}),
                           sample({feature}, {0, 1}, {batch, time})};
        },
};

void check_number(std::string_view op, const TensorType& x, const char* repair) {
  if (x.dtype() == boolean) throw DTypeError(str(op, ": takes numbers, got ", x, "; ", repair));
}
constexpr const char *kCountInstead = "cast it, as in sum(cast(x, i32))", *kAnyInstead = "use any",
                     *kCastFirst = "cast it, as in argmax(cast(x, i32), axis)";

// x̄ is ȳ along every axis that was summed over.
const Op sum_op{
    .name = "sum",
    .type =
        [](TypeArgs& a) {
          check_number(a.op.name, a.in[0], kCountInstead);
          reduced_rule(a);
        },
    .kernel = reduction_kernel<&ReductionTable::sum>,
    .vjp =
        [](Vjp& at) {
          at.add(0, spread_like(at.cotangent(), at.attr<ReduceAttrs>().axes, at.input_type(0)));
        },
    .samples = [] { return samples_of(f32, -2, 2, true); },
};

// ---- max
// -----------------------------------------------------------------------------------------------------------

// Shared among ties. x is masked where padding might be read: there it holds the value that max
// gives over nothing, so that a row of nothing is tied everywhere; the public sum counts what is
// valid.
void max_vjp(Vjp& at) {
  const std::vector<int>& axes = at.attr<ReduceAttrs>().axes;
  const TensorType& type = at.input_type(0);
  if (!is_float(type.dtype())) return;
  const Tensor is_largest = equal(at.input(0), broadcastable(at.output(), axes, type));
  const Tensor ties =
      sum(cast(is_largest, type.dtype()), Axes(std::vector<Axis>(axes.begin(), axes.end())));
  const Tensor share = at.cotangent() / maximum(ties, 1);
  at.add(0, where(is_largest, spread_like(share, axes, type), 0));
}

const Op max_op{
    .name = "max",
    .type =
        [](TypeArgs& a) {
          check_number(a.op.name, a.in[0], kAnyInstead);
          reduced_rule(a);
        },
    .kernel = reduction_kernel<&ReductionTable::max>,
    .vjp = max_vjp,
    .reads = {.inputs = 1, .outputs = 1},
    .samples = [] { return samples_of(f32, -2, 2, false); },
};

double lowest(DType dtype) {
  switch (dtype) {
    case DType::i32:
      return std::numeric_limits<std::int32_t>::min();
    case DType::i64:
      return static_cast<double>(std::numeric_limits<std::int64_t>::min());
    default:
      return -std::numeric_limits<double>::infinity();
  }
}

const Op argmax_op{
    .name = "argmax",
    .type =
        [](TypeArgs& a) {
          check_number(a.op.name, a.in[0], kCastFirst);
          a.out.push_back(reduced_type(a.in[0], a.attr<ReduceAttrs>().axes).with(i32));
        },
    .kernel =
        [](KernelArgs& args) {
          const Tensor& x = args.input(0);
          reduction_table().argmax[static_cast<int>(x.dtype())](
              x.data<void>(), args.make().data<void>(),
              view_axes(x.type(), args.attr<ReduceAttrs>().axes));
        },
    .no_vjp = "positions are integers",
    .samples =
        [] {
          OpSamples all = samples_of(f32, -2, 2, true), single;
          for (OpSample& sample : all)
            if (get<ReduceAttrs>(sample.attrs.get()).axes.size() == 1)
              single.push_back(std::move(sample));
          return single;
        },
};

// ---- any and all
// ---------------------------------------------------------------------------------------------------

void truth_rule(TypeArgs& a) {
  if (a.in[0].dtype() != boolean)
    throw DTypeError(
        str(a.op.name, ": takes booleans, got ", a.in[0], "; compare first, as in x != 0"));
  reduced_rule(a);
}
const Op any_op{
    .name = "any",
    .type = truth_rule,
    .kernel = truth_kernel<&ReductionTable::any>,
    .no_vjp = "booleans have no gradient",
    .samples = [] { return samples_of(boolean, 0, 1, true); },
};
const Op all_op{
    .name = "all",
    .type = truth_rule,
    .kernel = truth_kernel<&ReductionTable::all>,
    .no_vjp = "booleans have no gradient",
    .samples = [] { return samples_of(boolean, 0, 1, true); },
};

// ---- Counting, for mean
// --------------------------------------------------------------------------------------------

/// How many positions the axes of x have: for traces, which do not know. Of x only the shape is
/// read.
const Op axes_size_op{
    .name = "axes_size",
    .type = [](TypeArgs& a) { a.out.push_back(TensorType(i32)); },
    .kernel =
        [](KernelArgs& args) {
          std::int64_t count = 1;
          for (int axis : args.attr<ReduceAttrs>().axes)
            count *= args.input(0).type().sizes()[static_cast<std::size_t>(axis)];
          *args.make().data<std::int32_t>() = static_cast<std::int32_t>(count);
        },
    .no_vjp = "sizes are integers",
    .samples = [] { return samples_of(f32, -2, 2, true); },
};

/// The product of the sizes if they are known, else -1.
std::int64_t known_size(const TensorType& x, const std::vector<int>& axes) {
  std::int64_t result = 1;
  for (int axis : axes) {
    const std::int64_t size = x.sizes()[static_cast<std::size_t>(axis)];
    if (size < 0) return -1;
    result *= size;
  }
  return result;
}

/// How many of the elements of x that are summed over the axes are no padding: i32, over dims of
/// the result.
Tensor valid_count(const Tensor& x, const std::vector<int>& axes) {
  const TensorType& type = x.type();
  // What matters are the masked dims that the axes, or length dims among them, have to do with.
  Dims masked, involved;
  for (int i = 0; i < type.rank(); ++i) {
    if (!is_masked(type, i)) continue;
    const Dim& dim = type.dims()[static_cast<std::size_t>(i)];
    Dims all = dim.length_dims();
    all.push_back(dim);
    if (std::none_of(all.begin(), all.end(),
                     [&](const Dim& of) { return has(axes, find(type.dims(), of)); }))
      continue;
    masked.push_back(dim);
    for (const Dim& of : all)
      if (!contains(involved, of)) involved.push_back(of);
  }
  std::vector<Axis> summed;
  std::vector<int> rest;
  for (int axis : axes) {
    const Dim& dim = type.dims()[static_cast<std::size_t>(axis)];
    if (!contains(involved, dim))
      rest.push_back(axis);
    else if (masked.size() != 1 || dim != masked[0])
      summed.push_back(dim);
  }
  Tensor count;
  if (masked.size() > 1)
    count = sum(ones(involved, i32), Axes(std::move(summed)));  // masks what is padding
  else if (has(axes, find(type.dims(), masked[0])))
    count = sum(masked[0].lengths(), Axes(std::move(summed)));
  else
    count = sum(cast(mask(masked[0]), i32), Axes(std::move(summed)));
  const std::int64_t size = known_size(type, rest);
  if (size == 1) return count;
  return size >= 0 ? count * size : count * bind(axes_size_op, {x}, reduce_attrs(rest));
}

Tensor mean_over(const Tensor& x, const std::vector<int>& axes) {
  check_float("mean", x.type(), "cast it, as in mean(cast(x, f32))");
  const Tensor total = bind(sum_op, {without_padding(x, axes, 0)}, reduce_attrs(axes));
  const bool is_masked = reduces_padding(x.type(), axes);
  const std::int64_t size = is_masked ? -1 : known_size(x.type(), axes);
  if (size >= 0) return total / static_cast<double>(std::max<std::int64_t>(size, 1));
  const Tensor count =
      is_masked ? valid_count(x, axes) : bind(axes_size_op, {x}, reduce_attrs(axes));
  return total / cast(maximum(count, 1), x.dtype());
}

Tensor reduce(const Op& op, const Tensor& x, const std::vector<int>& axes, double neutral) {
  return bind(op, {without_padding(x, axes, neutral)}, reduce_attrs(axes));
}

}  // namespace

Tensor spread(const Tensor& x, const std::vector<int>& axes, const Dims& dims) {
  return bind(spread_op, {x}, make_attrs(SpreadAttrs{axes, dims}));
}
Tensor spread_like(const Tensor& y, const std::vector<int>& axes, const TensorType& x) {
  return axes.empty() ? y : spread(y, axes, dims_at(x, axes));
}
Tensor broadcastable(const Tensor& y, const std::vector<int>& axes, const TensorType& x) {
  // Named dims are matched by identity; plain ones need an axis of size 1 unless only leading axes
  // are missing.
  if (x.is_named() || axes.empty() || axes.back() == static_cast<int>(axes.size()) - 1) return y;
  return spread(y, axes, Dims(axes.size(), Dim(1)));
}

// ---- Public functions
// ----------------------------------------------------------------------------------------------

Tensor sum(const Tensor& x, const Axes& axes) {
  return reduce(sum_op, x, positions(x, axes, "sum"), 0);
}
Tensor sum(const Tensor& x) { return reduce(sum_op, x, all_positions(x), 0); }
Tensor mean(const Tensor& x, const Axes& axes) { return mean_over(x, positions(x, axes, "mean")); }
Tensor mean(const Tensor& x) { return mean_over(x, all_positions(x)); }
Tensor max(const Tensor& x, const Axes& axes) {
  check_number("max", x.type(), kAnyInstead);
  return reduce(max_op, x, positions(x, axes, "max"), lowest(x.dtype()));
}
Tensor max(const Tensor& x) {
  check_number("max", x.type(), kAnyInstead);
  return reduce(max_op, x, all_positions(x), lowest(x.dtype()));
}
Tensor any(const Tensor& x, const Axes& axes) {
  return reduce(any_op, x, positions(x, axes, "any"), 0);
}
Tensor any(const Tensor& x) { return reduce(any_op, x, all_positions(x), 0); }
Tensor all(const Tensor& x, const Axes& axes) {
  return reduce(all_op, x, positions(x, axes, "all"), 1);
}
Tensor all(const Tensor& x) { return reduce(all_op, x, all_positions(x), 1); }
Tensor argmax(const Tensor& x, const Axis& axis) {
  check_number("argmax", x.type(), kCastFirst);
  return reduce(argmax_op, x, {axis.in(x.type(), "argmax")}, lowest(x.dtype()));
}

namespace {
const Op* const kReductionOps[] = {&sum_op,     &spread_op,     &max_op,       &argmax_op,
                                   &any_op,     &all_op,        &axes_size_op, &logsumexp_op,
                                   &softmax_op, &log_softmax_op};
}
std::span<const Op* const> reduction_ops() { return kReductionOps; }

}  // namespace reel
