// Checks and interprets the arguments of scan. Its eager form is in scan_run.cpp, its traced one in
// scan_record.cpp.
#include "reel/frontend/loops/scan_leaves.h"

#include <algorithm>
#include <limits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/frontend/loops/loop_policy.h"
#include "reel/frontend/loops/scan_index.h"
#include "reel/frontend/loops/scan_slices.h"
#include "reel/frontend/loops/trace_subcomputation.h"
#include "reel/frontend/tree/tree.h"

namespace reel {
namespace {

void find_plain_length(const ScanSpec& spec, ScanPlan& plan) {
  bool differ = false;
  for (const Tensor& x : plan.xs) {
    const Dim dim = x.dims()[0];
    if (!plan.dim) plan.dim = dim;
    if (dim.has_size() && !plan.dim->has_size()) plan.dim = dim;
    differ = differ || (dim.has_size() && plan.dim->has_size() && !(dim == *plan.dim));
  }
  if (!differ) return;
  const std::vector<std::string> paths = spec.xs_paths();
  std::string lines;
  for (std::size_t i = 0, x = 0; i < spec.xs.size(); ++i)
    if (spec.xs[i].kind == TreeLeaf::Kind::tensor)
      lines += str("\n  ", paths[i], ": ", plan.xs[x++].type());
  if (spec.spatial_dim)
    throw ShapeError(str(plan.what, ": spatial_dim has size ", *spec.spatial_dim,
                         ", but xs have another size along their first axis", lines,
                         "\nGive the size that they have, or leave spatial_dim out."));
  throw ShapeError(str(plan.what, ": xs differ in the size of their first axis", lines,
                       "\nPlain tensors are scanned along it: cut them to one length."));
}

/// Returns the dim, or if the scan is in the body of another loop, the slice of it that xs have.
Dim dim_of_xs(const ScanSpec& spec, const Dim& dim) {
  for (const TreeLeaf& leaf : spec.xs) {
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined()) continue;
    const int axis = find_axis(leaf.tensor.dims(), dim);
    if (axis >= 0) return canonical(leaf.tensor.dims()[static_cast<std::size_t>(axis)]);
  }
  return dim;
}

/// Returns the reason why x cannot be scanned, or an empty string.
std::string objection(const ScanPlan& plan, const Tensor& x) {
  if (!x.is_defined()) return "an empty Tensor";
  if (!x.rank()) return str(x.type(), ", a scalar: it has no axis to scan");
  if (plan.is_named && find(x.dims(), *plan.dim) < 0)
    return str(x.type(), ", which has no dim ", *plan.dim);
  if (!plan.is_named && x.type().is_named()) return str(x.type(), ", whose dims are named");
  return {};
}

void place_xs(const ScanSpec& spec, ScanPlan& plan) {
  std::string lines;
  bool has_empty = false;
  for (std::size_t i = 0; i < spec.xs.size(); ++i) {
    if (spec.xs[i].kind != TreeLeaf::Kind::tensor) continue;
    const Tensor& x = spec.xs[i].tensor;
    if (const std::string why = objection(plan, x); !why.empty()) {
      lines += str("\n  ", spec.xs_paths()[i], ": ", why);
      has_empty = has_empty || !x.is_defined();
    } else {
      const int axis = plan.is_named ? find(x.dims(), *plan.dim) : 0;
      plan.xs.push_back(with_axis_first(x, axis));
    }
  }
  if (!lines.empty()) {
    const std::string text =
        plan.is_named ? str(plan.what, ": these xs cannot be scanned along ", *plan.dim, lines,
                            "\nTake spatial_dim from an argument, with x.dim(\"", plan.dim->name(),
                            "\"); values that are the same in every iteration can be captured.")
                      : str(plan.what, ": these xs cannot be scanned along their first axis", lines,
                            "\nGive spatial_dim, a dim that all of them have; values that are the "
                            "same in every iteration can be captured.");
    if (has_empty) throw StructureError(text);
    throw ShapeError(text);
  }
  if (!plan.is_named) find_plain_length(spec, plan);
}

/// True if some tensor has axes, named or plain ones as asked.
bool has_axes(const TreeLeaves& leaves, bool are_named) {
  return std::any_of(leaves.begin(), leaves.end(), [&](const TreeLeaf& leaf) {
    return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() && leaf.tensor.rank() &&
           leaf.tensor.type().is_named() == are_named;
  });
}

/// Returns the bound as i32, the dtype of lengths; longer loops are not supported.
Tensor most_iterations(const IterationCount& given, const std::string& what) {
  constexpr std::int64_t kMaxIterations = std::numeric_limits<std::int32_t>::max();
  if (given.is_number()) return scalar(std::min(given.number(), kMaxIterations), i32);
  const Tensor most = given.tensor(what);
  return most.dtype() == i64 ? cast(minimum(most, scalar(kMaxIterations, i64)), i32) : most;
}

/// Finds the bounds of the trip count apart from cond.
void find_ends(const ScanSpec& spec, ScanPlan& plan) {
  if (plan.dim && plan.dim->is_ragged()) {
    plan.lengths = plan.dim->lengths();
    plan.entry_dims = plan.lengths.dims();  // the names that the trace uses
  }
  if (plan.dim)
    plan.bound = plan.dim->is_ragged() || !plan.dim->has_size() ? extent_of(plan)
                                                                : scalar(plan.dim->size(), i64);
  for (const Dim& dim : canonical(spec.cond_dims.value_or(Dims{})))
    if (!contains(plan.entry_dims, dim)) plan.entry_dims.push_back(dim);
  if (!spec.max_seq_len) return;
  const Tensor most = most_iterations(*spec.max_seq_len, plan.what + ": max_seq_len");
  for (const Dim& dim : most.dims())
    if (!contains(plan.entry_dims, dim))
      throw ShapeError(str(plan.what, ": max_seq_len is ", most.type(), ", but entries end by ",
                           plan.entry_dims, "; give it dims of cond_dims, or none"));
  if (most.rank()) {
    const Tensor clipped = maximum(most, 0);
    plan.lengths = plan.lengths.is_defined() ? minimum(plan.lengths, clipped) : clipped;
  } else {
    const Tensor clipped = maximum(cast(most, i64), 0);
    plan.bound = plan.bound.is_defined() ? minimum(plan.bound, clipped) : clipped;
    if (plan.lengths.is_defined()) plan.lengths = minimum(plan.lengths, cast(clipped, i32));
  }
}

void check_arguments(const ScanSpec& spec, const ScanPlan& plan) {
  const bool has_xs = !tensors_of(spec.xs).empty();
  if (spec.cond_dims && !spec.cond)
    throw ArgumentError(str(plan.what, ": cond_dims is given, but no cond; give both, or neither"));
  if (plan.dim) return;
  if (!spec.cond)
    throw ArgumentError(str(plan.what,
                            ": the number of iterations is unknown; give spatial_dim with a size, "
                            "xs, or cond with cond_dims"));
  if (has_xs)
    throw ArgumentError(str(plan.what, ": xs are given, so their spatial_dim must have a size"));
  if (spec.is_reverse) throw ArgumentError(str(plan.what, ": reverse needs a known length"));
}

}  // namespace

Tensor extent_of(const ScanPlan& plan) {
  if (plan.dim->has_size() && !is_tracing()) return scalar(plan.dim->size(), i64);
  if (!plan.dim->is_named())
    return Tensor();  // plain unknown size: the slices of xs know their end
  const Tensor lengths = cast(plan.dim->lengths(), i64);
  return lengths.rank() ? maximum(max(lengths), 0) : lengths;
}

ScanPlan make_plan(const ScanSpec& spec) {
  ScanPlan plan{str(spec.function, " \"", spec.name, "\"")};
  if (spec.spatial_dim && !spec.spatial_dim->is_undefined())
    plan.dim = canonical(*spec.spatial_dim);
  plan.is_named = spec.spatial_dim && spec.spatial_dim->is_named();
  if (spec.spatial_dim && spec.spatial_dim->is_undefined())
    plan.is_named = tensors_of(spec.xs).empty();
  if (spec.spatial_dim && spec.spatial_dim->is_undefined() && !tensors_of(spec.xs).empty())
    throw ArgumentError(
        str(plan.what, ": xs are given, so their spatial_dim must have a size, but ",
            *spec.spatial_dim, " is undefined; take it from them, with x.dim(name)"));
  if (plan.is_named && plan.dim) plan.dim = dim_of_xs(spec, *plan.dim);
  place_xs(spec, plan);
  check_arguments(spec, plan);
  find_ends(spec, plan);
  plan.makes_dim = !plan.dim || spec.cond || spec.max_seq_len;
  if (plan.makes_dim) {
    if (spec.spatial_dim && spec.spatial_dim->is_named())
      plan.new_dim = spec.spatial_dim->name();
    else if (!plan.dim && (!plan.entry_dims.empty() || !has_axes(spec.initial, false)))
      plan.new_dim = "scan_dim";
    plan.ys_name_it = !spec.spatial_dim && !plan.dim && plan.entry_dims.empty() &&
                      !has_axes(spec.initial, false) && !has_axes(spec.initial, true);
  }
  // Known ends without a condition: the new dim is known before the loop.
  if (plan.makes_dim && !spec.cond && !plan.new_dim.empty()) {
    plan.dim = Dim(plan.new_dim, plan.lengths.is_defined() ? plan.lengths : plan.bound);
    plan.makes_dim = false;
    if (plan.lengths.is_defined()) plan.entry_dims = plan.lengths.dims();
  }
  return plan;
}

Tensor checked_entry_condition(const ScanSpec& spec, const ScanPlan& plan,
                               const LoopCondition& condition) {
  const Dims wanted = canonical(spec.cond_dims.value_or(plan.entry_dims));
  if (!condition.fixed && !condition.tensor.is_defined())
    throw StructureError(str(plan.what, ": cond returned an empty Tensor"));
  Tensor result = condition.fixed ? full(wanted, *condition.fixed, boolean) : condition.tensor;
  if (condition.fixed && *condition.fixed && is_tracing() && !plan.bound.is_defined() &&
      !plan.lengths.is_defined())
    throw TraceError(str(
        plan.what, ": cond is always true, so the traced loop would never end; give max_seq_len"));
  if (result.dtype() != boolean)
    throw DTypeError(str(plan.what, ": cond must return booleans over cond_dims ", wanted, ", got ",
                         result.type(), "; compare, as in s < 10"));
  bool fits = result.dims().size() == wanted.size();
  for (const Dim& dim : result.dims()) fits = fits && contains(wanted, dim);
  if (!fits && !spec.cond_dims && !wanted.empty())
    throw ArgumentError(
        str(plan.what, ": cond returns ", result.type(), ", but entries end over ", wanted,
            "; return ", TensorType(boolean, wanted),
            ", or say in cond_dims which dims it has: {} for one condition for all"));
  if (!fits && !spec.cond_dims)
    throw ArgumentError(str(
        plan.what, ": cond returns ", result.type(), ", so cond_dims must name its dims; without ",
        "cond_dims it is one condition for all: ", TensorType(boolean, wanted)));
  if (!fits)
    throw ShapeError(str(
        plan.what, ": cond must return booleans over cond_dims ", wanted, ", got ", result.type(),
        "; return one for every entry, or name the dims that it has in cond_dims"));
  return plan.entry_dims.empty() ? result : expand(transpose_to(result, wanted), plan.entry_dims);
}

Tensor truncates_at(const ScanSpec& spec, const ScanPlan& plan, const Tensor& position) {
  Tensor number = position;
  if (spec.is_reverse) {
    const Tensor steps = plan.dim->has_size() ? scalar(plan.dim->size(), i64) : extent_of(plan);
    if (!steps.is_defined())
      throw ArgumentError(str(plan.what, ": truncate counts iterations from the last one, but ",
                              "their number, ", *plan.dim, ", is not known"));
    number = steps - 1 - position;
  }
  return stop_gradient(
      logical_and(number > 0, equal(remainder(number, spec.truncate), std::int64_t{0})));
}

std::string name_of_made_dim(const ScanPlan& plan, const TreeLeaves& ys) {
  return plan.ys_name_it && has_axes(ys, false) ? "" : plan.new_dim;
}

Dims dims_of_arrays(const TreeLeaves& state) {
  Dims result;
  for (const TreeLeaf& leaf : state)
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.type().is_list())
      result.insert(result.end(), leaf.tensor.dims().begin(), leaf.tensor.dims().end());
  return result;
}

Tensor transpose_to(const Tensor& x, const Dims& dims) {
  return x.dims() == dims ? x : transpose(x, Axes(dims));
}

namespace {

/// Convert the result to leaves and back.
TreeLeaves leaves_of(const ScanResult& result) {
  TreeLeaves leaves = result.ys;
  leaves.insert(leaves.end(), result.state.begin(), result.state.end());
  leaves.push_back(TreeLeaf::of(result.dim));
  return leaves;
}
ScanResult result_of(const TreeLeaves& leaves, std::size_t state_size) {
  const auto state = leaves.end() - 1 - static_cast<std::ptrdiff_t>(state_size);
  return {TreeLeaves(leaves.begin(), state), TreeLeaves(state, leaves.end() - 1),
          leaves.back().dim};
}

/// Records the scan as one record of the active tapes; its gradient saves the residuals of the
/// policy.
ScanResult run_recorded_scan(const ScanSpec& spec, const ScanPlan& plan) {
  TreeLeaves arguments = spec.initial;
  arguments.insert(arguments.end(), spec.xs.begin(), spec.xs.end());
  const TreeLeaves leaves =
      run_recorded(plan.what, std::move(arguments), [&](const TreeLeaves& inside) {
        ScanSpec recorded = spec;
        const auto xs = inside.begin() + static_cast<std::ptrdiff_t>(spec.initial.size());
        recorded.initial.assign(inside.begin(), xs);
        recorded.xs.assign(xs, inside.end());
        return leaves_of(scan_leaves(recorded));
      });
  return result_of(leaves, spec.initial.size());
}

}  // namespace

ScanResult scan_leaves(const ScanSpec& spec) try {
  if (spec.indexed_body) return scan_with_index(spec);
  const ScanPlan plan = make_plan(spec);
  if (spec.truncate < 0)
    throw ArgumentError(str(plan.what, ": truncate is a number of steps, got ", spec.truncate,
                            "; 0 stands for all"));
  if (has_policy(spec.checkpoint, spec.swap_memory) && is_recorded_here())
    return run_recorded_scan(spec, plan);
  if (spec.is_reverse && (spec.cond || spec.max_seq_len || plan.dim->is_ragged()))
    return scan_reversed_entries(spec, plan);
  if (has_sliced_dims(plan)) return scan_sliced_dims(spec, plan);
  return run_plan(spec, plan);
} catch (const std::bad_alloc&) {
  throw_no_memory_in(spec.function);
}

TreeLeaves initial_slice_leaves(const ScanSpec& spec) {
  return with_tensors(spec.xs,
                      initial_slices(make_plan(spec), spec.is_reverse,
                                     ", so there is no first slice; give an initial value"));
}

ScanResult run_plan(const ScanSpec& spec, const ScanPlan& plan) {
  return is_tracing() ? record_scan(spec, plan) : run_scan(spec, plan);
}

}  // namespace reel
