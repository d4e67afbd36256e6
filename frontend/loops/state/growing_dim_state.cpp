#include "reel/frontend/loops/state/growing_dim_state.h"

#include <algorithm>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"

namespace reel {
namespace {

bool share_a_dim(const Dims& a, const Dims& b) {
  return std::any_of(a.begin(), a.end(), [&](const Dim& dim) { return contains(b, dim); });
}

}  // namespace

GrowingDimState::GrowingDimState(const StateRule& rule, const std::vector<std::size_t>& changing,
                                 const Dims& entry_dims)
    : follows_(rule.initial().size()), is_shared_(rule.initial().size()) {
  const TreeLeaves& initial = rule.initial();
  DimChanges all, shared;
  const Dim any("any", 0);
  for (const std::size_t i : changing) {
    const Dim& dim = initial[i].dim;
    const bool runs_over_shared = std::any_of(dim.length_dims().begin(), dim.length_dims().end(),
                                              [&](const Dim& of) { return shared.affects(of); });
    all.add(dim, any);
    if (share_a_dim(dim.length_dims(), entry_dims) && !runs_over_shared)
      by_entry_.push_back(i);
    else
      shared.add(dim, any);
  }
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (initial[i].kind != TreeLeaf::Kind::tensor || initial[i].tensor.type().is_list()) continue;
    const TensorType& type = initial[i].tensor.type();
    follows_[i] = all.affects(type);
    is_shared_[i] = shared.affects(type);
    any_ = any_ || follows_[i];
    goes_on_ = goes_on_ || (is_shared_[i] && share_a_dim(type.dims(), entry_dims));
  }
}

TreeLeaves GrowingDimState::seen(TreeLeaves state, const Tensor& running) const {
  if (goes_on_) return state;
  DimChanges changes;
  for (const std::size_t i : by_entry_) {
    const Dim& dim = state[i].dim;
    const Dim shown(dim.name(),
                    computed_plainly([&] { return fill_running(dim.lengths(), running); }));
    copy_slice(dim, shown);
    changes.add(dim, shown);
    state[i].dim = shown;
  }
  for (std::size_t i = 0; i < state.size(); ++i)
    if (follows_[i])
      state[i].tensor =
          resized(fill_running(state[i].tensor, running), changes(state[i].tensor.dims()));
  return state;
}

Tensor GrowingDimState::own_frame(const Tensor& x, const Tensor& running) {
  if (!is_float(x.dtype()) || x.type().is_list()) return fill_running(x, running);
  const Tensor harmless = where(isfinite(x), x, fill_running(x, running));
  return keep_finished(x, stop_gradient(harmless), running);
}

TreeLeaves GrowingDimState::kept(TreeLeaves next, const TreeLeaves& before,
                                 const Tensor& running) const {
  DimChanges of_next, of_before;
  for (const std::size_t i : by_entry_) {
    const Dim &came = next[i].dim, &was = before[i].dim;
    if (came == was) continue;
    const Dim both(was.name(), computed_plainly([&] {
                     return keep_finished(came.lengths(), was.lengths(), running);
                   }));
    copy_slice(came, both);
    of_next.add(came, both);
    of_before.add(was, both);
    next[i].dim = both;
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (!follows_[i]) continue;
    Tensor& tensor = next[i].tensor;
    tensor = resized(tensor, of_next(tensor.dims()));
    if (is_shared_[i]) continue;
    const Tensor& old = before[i].tensor;
    tensor = keep_finished(tensor, resized(old, of_before(old.dims())), running);
  }
  return next;
}

}  // namespace reel
