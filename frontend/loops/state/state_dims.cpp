#include "reel/frontend/loops/state/state_dims.h"

#include <algorithm>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/functions/unranked.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/frontend/loops/state/fresh_dims.h"
#include "reel/frontend/tree/tree.h"

namespace reel {
namespace {

/// Returns a dim of a trace; its size is known only during a run.
Dim formal_dim(const Dim& like, const DimChanges& formal) {
  const Dim result = dim_symbol(like.name(), canonical(formal(like.length_dims())));
  copy_slice(like, result);
  return result;
}

}  // namespace

FormalState::FormalState(const StateRule& rule) : rule_(rule), is_unranked_(rule.initial().size()) {
  for (std::size_t i = 0; i < is_unranked_.size(); ++i)
    is_unranked_[i] = is_unranked(rule.initial()[i].tensor);
}

bool FormalState::learns(const TreeLeaves& returned) {
  const bool knows_dims = learns_dims(returned);
  return learns_ranks(returned) || knows_dims;
}

bool FormalState::learns_ranks(const TreeLeaves& returned) {
  bool is_new = false;
  for (std::size_t i = 0; i < returned.size(); ++i) {
    if (returned[i].kind != TreeLeaf::Kind::tensor || is_unranked_[i]) continue;
    const Tensor &before = rule_.initial()[i].tensor, &after = returned[i].tensor;
    const bool is_named = before.type().is_named() || after.type().is_named();
    const bool changes = is_unranked(after) || after.rank() != before.rank() ||
                         (is_named && after.dims() != before.dims());
    if (!rule_.lets_rank_change(i) || !changes) continue;
    is_unranked_[i] = true;
    is_new = true;
  }
  return is_new;
}

bool FormalState::forget_ranks() {
  bool has_known = false;
  for (std::size_t i = 0; i < is_unranked_.size(); ++i) {
    has_known = has_known || (rule_.lets_rank_change(i) && !is_unranked_[i]);
    is_unranked_[i] = is_unranked_[i] || rule_.lets_rank_change(i);
  }
  return has_known;
}

bool FormalState::learns_dims(const TreeLeaves& returned) {
  const TreeLeaves& initial = rule_.initial();
  const std::size_t known = changing_.size();
  for (const std::size_t i : rule_.slots()) {
    const auto at = std::find(changing_.begin(), changing_.end(), i);
    if (at == changing_.end() && !(returned[i].dim == initial[i].dim)) changing_.push_back(i);
  }
  if (changing_.size() == known) return false;
  // Lengths of one Dim may run over another: those that run over fewer dims come first.
  std::stable_sort(changing_.begin(), changing_.end(), [&](std::size_t a, std::size_t b) {
    return initial[a].dim.length_dims().size() < initial[b].dim.length_dims().size();
  });
  formal_.clear();
  DimChanges formal;
  for (const std::size_t i : changing_) {
    formal_.push_back(formal_dim(initial[i].dim, formal));
    formal.add(initial[i].dim, formal_.back());
  }
  return true;
}

TreeLeaves FormalState::add_inputs(GraphBuilder& builder) const {
  TreeLeaves leaves = rule_.initial();
  DimChanges formal;
  for (std::size_t k = 0; k < changing_.size(); ++k)
    formal.add(leaves[changing_[k]].dim, formal_[k]);
  for (std::size_t k = 0; k < changing_.size(); ++k) leaves[changing_[k]].dim = formal_[k];
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    Tensor& x = leaves[i].tensor;
    if (leaves[i].kind == TreeLeaf::Kind::tensor)
      x = builder.add_input(is_unranked_[i] ? TensorType::unranked(x.dtype())
                                            : formal(rule_.formal_type(i)));
  }
  for (const Dim& dim : formal_) builder.add_input(token_type(dim));
  return leaves;
}

TreeLeaves FormalState::with_fresh_dims(TreeLeaves state, const GraphBuilder& builder) const {
  FreshDims fresh(builder);
  for (const std::size_t i : changing_) fresh.add(state[i].dim);
  for (std::size_t i = 0; i < state.size(); ++i)
    if (is_unranked_[i] && !is_unranked(state[i].tensor)) fresh.add_all(state[i].tensor);
  return fresh(std::move(state));
}

Tensors FormalState::carries(const TreeLeaves& state) const {
  Tensors result;
  for (std::size_t i = 0; i < state.size(); ++i)
    if (state[i].kind == TreeLeaf::Kind::tensor)
      result.push_back(is_unranked_[i] ? as_unranked(state[i].tensor) : state[i].tensor);
  for (const std::size_t i : changing_) result.push_back(dim_token(state[i].dim));
  return result;
}

TreeLeaves FormalState::result(const Tensors& outputs) const {
  TreeLeaves leaves = with_tensors(rule_.initial(), outputs);
  const std::size_t first_token = tensors_of(rule_.initial()).size();
  for (std::size_t k = 0; k < changing_.size(); ++k)
    leaves[changing_[k]].dim = outputs[first_token + k].dims()[1];
  return leaves;
}

}  // namespace reel
