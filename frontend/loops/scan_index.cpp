#include "reel/frontend/loops/scan_index.h"

#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/scan_leaves.h"
#include "reel/frontend/tree/tree.h"

namespace reel {
namespace {

PathsFn with_index(const PathsFn& paths) {
  return [paths] {
    std::vector<std::string> result = paths();
    result.push_back("index");
    return result;
  };
}

/// Makes the positions of a dim one more of xs.
ScanResult scan_positions(const ScanSpec& spec, const Dim& dim) {
  ScanSpec inner = spec;
  inner.indexed_body = nullptr;
  inner.xs.push_back(TreeLeaf::of(range(dim)));
  inner.xs_paths = with_index(spec.xs_paths);
  inner.body = [&](TreeLeaves x, TreeLeaves state) {
    const Tensor index = x.back().tensor;
    x.pop_back();
    return spec.indexed_body(index, x, std::move(state));
  };
  return scan_leaves(inner);
}

/// Carries the number of the iteration.
ScanResult scan_counting(const ScanSpec& spec) {
  ScanSpec inner = spec;
  inner.indexed_body = nullptr;
  inner.initial.push_back(TreeLeaf::of(scalar(0)));
  if (!inner.shape_invariants.empty()) inner.shape_invariants.push_back(std::nullopt);
  inner.state_paths = with_index(spec.state_paths);
  inner.returned_paths = with_index(spec.returned_paths);
  inner.body = [&](const TreeLeaves& x, TreeLeaves state) {
    const Tensor index = state.back().tensor;
    state.pop_back();
    ScanStep step = spec.indexed_body(index, x, std::move(state));
    step.state.push_back(TreeLeaf::of(index + 1));
    return step;
  };
  if (spec.cond)
    inner.cond = [&](TreeLeaves state) {
      state.pop_back();
      return spec.cond(state);
    };
  ScanResult result = scan_leaves(inner);
  result.state.pop_back();
  return result;
}

}  // namespace

ScanResult scan_with_index(const ScanSpec& spec) {
  ScanSpec bare = spec;  // only its dim is of interest: a bound would replace it
  bare.cond = nullptr;
  bare.cond_dims.reset();
  bare.max_seq_len.reset();
  const bool has_dim =
      !tensors_of(spec.xs).empty() || (spec.spatial_dim && !spec.spatial_dim->is_undefined());
  if (!has_dim) return scan_counting(spec);
  const ScanPlan plan = make_plan(bare);
  if (plan.dim->is_named() || plan.dim->has_size()) return scan_positions(spec, *plan.dim);
  if (spec.is_reverse)
    throw ArgumentError(str(plan.what, ": in reverse, the index of x counts from the end, but the ",
                            "size of the scanned axis is not known; name it"));
  return scan_counting(spec);
}

}  // namespace reel
