#include "reel/frontend/loops/state/state_dims.h"

#include <algorithm>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/dim_symbol.h"
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

bool FormalState::learns(const TreeLeaves& returned) {
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
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].kind == TreeLeaf::Kind::tensor)
      leaves[i].tensor = builder.add_input(formal(rule_.formal_type(i)));
  for (const Dim& dim : formal_) builder.add_input(token_type(dim));
  return leaves;
}

Tensors FormalState::carries(const TreeLeaves& state) const {
  Tensors result = tensors_of(state);
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
