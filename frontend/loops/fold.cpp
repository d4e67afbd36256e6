#include "reel/frontend/loops/fold.h"

#include <algorithm>
#include <limits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/loops/loop_policy.h"
#include "reel/frontend/loops/scan_leaves.h"
#include "reel/frontend/loops/scan_slices.h"
#include "reel/frontend/loops/trace_subcomputation.h"

namespace reel::detail {
namespace {

/// Returns the dtype of the counter: the dtype of tensor bounds, if there are any.
DType counter_dtype(const ForiSpec& spec, const std::string& what) {
  std::optional<DType> result;
  bool needs_i64 = false;
  for (const auto& [bound, role] : {std::pair{&spec.lower, "lower"}, {&spec.upper, "upper"}}) {
    if (bound->is_number()) {
      using Small = std::numeric_limits<std::int32_t>;
      needs_i64 = needs_i64 || bound->number() < Small::min() || bound->number() > Small::max();
      continue;
    }
    const Tensor tensor = bound->tensor(str(what, ": ", role));
    if (tensor.rank())
      throw ShapeError(str(what, ": ", role, " must be a scalar, got ", tensor.type()));
    if (result && *result != tensor.dtype())
      throw DTypeError(str(what, ": lower is ", spec.lower.tensor(what).type(), ", upper is ",
                           tensor.type(), ": dtypes differ; cast one"));
    result = tensor.dtype();
  }
  return result.value_or(needs_i64 ? i64 : i32);
}

/// Returns the dim of the loop: its size is the trip count.
Dim steps_of(const ForiSpec& spec, const std::string& what) {
  if (spec.lower.is_number() && spec.upper.is_number()) {
    const std::int64_t lower = spec.lower.number(), upper = spec.upper.number();
    std::int64_t steps = 0;
    if (lower < upper && __builtin_sub_overflow(upper, lower, &steps))
      throw ArgumentError(
          str(what, ": from ", lower, " to ", upper, " are more steps than can be counted"));
    return Dim(steps);
  }
  const auto wide = [&](const IterationCount& bound) { return cast(bound.tensor(what), i64); };
  const Tensor lower = wide(spec.lower), upper = wide(spec.upper);
  // Overflow wraps around to a negative difference: saturate it.
  const Tensor difference = upper - lower;
  constexpr std::int64_t kMaxIterations = std::numeric_limits<std::int64_t>::max();
  return Dim("i", where(lower < upper, where(difference < 0, kMaxIterations, difference), 0));
}

/// In a trace, the longest counter that is made as one tensor before the loop.
constexpr std::int64_t kMaxCounts = 1 << 20;

/// Returns the counters of all iterations as one tensor, if the bounds are known and the loop is
/// recorded in a graph. As slices of the loop the counters are no loop-carried dependency, and
/// gathers at the counter can be batched across iterations. The dim is named if the state has named
/// dims.
std::optional<Tensor> counts_of(const ForiSpec& spec, const Dim& steps, DType dtype) {
  const bool is_recorded =
      is_tracing() ||
      (has_policy(spec.options.checkpoint, spec.options.swap_memory) && is_recorded_here());
  if (!is_recorded || !spec.lower.is_number() || !spec.upper.is_number()) return std::nullopt;
  if (steps.size() == 0 || steps.size() > kMaxCounts) return std::nullopt;
  const bool is_named =
      std::any_of(spec.initial.begin(), spec.initial.end(), [](const TreeLeaf& leaf) {
        return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
               leaf.tensor.type().is_named();
      });
  const Tensor counts = range(is_named ? Dim("i", steps.size()) : steps, dtype);
  return spec.lower.number() ? counts + scalar(spec.lower.number(), dtype) : counts;
}

}  // namespace

TreeLeaves fori_loop_leaves(const ForiSpec& spec) {
  const std::string what = str("fori_loop \"", spec.options.name, "\"");
  if (spec.options.unroll < 1)
    throw ArgumentError(str(what, ": unroll must be at least 1, got ", spec.options.unroll));
  const DType dtype = counter_dtype(spec, what);
  ScanSpec loop;
  loop.function = "fori_loop";
  loop.name = spec.options.name;
  loop.checkpoint = spec.options.checkpoint;
  loop.swap_memory = spec.options.swap_memory;
  loop.spatial_dim = steps_of(spec, what);
  loop.has_ys = false;
  if (const std::optional<Tensor> counts = counts_of(spec, *loop.spatial_dim, dtype)) {
    loop.spatial_dim = counts->dims()[0];
    loop.xs = {TreeLeaf::of(*counts)};
    loop.xs_paths = [] { return std::vector<std::string>{"i"}; };
    loop.initial = spec.initial;
    loop.shape_invariants = spec.shape_invariants;
    loop.state_paths = spec.paths;
    loop.returned_paths = spec.returned_paths;
    loop.body = [&](const TreeLeaves& i, TreeLeaves s) {
      ScanStep step;
      step.state = spec.body(i[0].tensor, std::move(s));
      return step;
    };
    return scan_leaves(loop).state;
  }
  const Tensor first =
      spec.lower.is_number() ? scalar(spec.lower.number(), dtype) : spec.lower.tensor(what);
  loop.initial = {TreeLeaf::of(first)};
  loop.initial.insert(loop.initial.end(), spec.initial.begin(), spec.initial.end());
  loop.shape_invariants = spec.shape_invariants;
  if (!loop.shape_invariants.empty())
    loop.shape_invariants.insert(loop.shape_invariants.begin(), std::nullopt);
  const auto with_counter = [](const PathsFn& of) {
    return [&of] {
      std::vector<std::string> paths = of();
      paths.insert(paths.begin(), "i");
      return paths;
    };
  };
  loop.state_paths = with_counter(spec.paths);
  loop.returned_paths = with_counter(spec.returned_paths);
  loop.body = [&](const TreeLeaves&, TreeLeaves s) {
    const Tensor i = s[0].tensor;
    s.erase(s.begin());
    ScanStep step;
    step.state = spec.body(i, std::move(s));
    step.state.insert(step.state.begin(), TreeLeaf::of(i + 1));
    return step;
  };
  TreeLeaves last = scan_leaves(loop).state;
  last.erase(last.begin());
  return last;
}

EndAndRest take_end(const TreeLeaves& xs, const PathsFn& paths, const FoldOptions& options,
                    bool from_end) {
  ScanSpec spec;
  spec.function = function_of(from_end);
  spec.name = options.name;
  spec.spatial_dim = options.spatial_dim;
  spec.xs = xs;
  spec.xs_paths = paths;
  const ScanPlan plan = make_plan(spec);
  const Tensors ends = initial_slices(plan, from_end, " to start from; give an initial value");
  std::optional<Dim> dim;
  Tensors rests;
  for (const Tensor& x : plan.xs) {
    rests.push_back(from_end ? slice(x, 0, 0, -1, dim) : slice(x, 0, 1, {}, dim));
    if (plan.is_named && !dim) dim = rests.back().dims()[0];
  }
  return {with_tensors(xs, ends), with_tensors(xs, rests), dim};
}

}  // namespace reel::detail
