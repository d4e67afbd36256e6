#include "reel/trace/executors/loop/iterations.h"

#include <climits>

#include "reel/core/types/sizes.h"

namespace reel {

Iterations::Iterations(const LoopAttrs& attrs, OpInputs in)
    : limit(attrs.has_bound ? std::max<std::int64_t>(integer_of(*in[0].tensor), 0) : INT64_MAX),
      attrs_(attrs) {
  if (attrs.within_chunk) {
    const std::int64_t* chunk = in[attrs.chunk_input()].tensor->data<std::int64_t>();
    first_ = chunk[0];
    all_ = chunk[1];
  }
  if (attrs.has_lengths) lengths_ = *in[attrs.has_bound].tensor;
  for (int i = 0; i < attrs.slices; ++i) {
    const Tensor& slices = *in[attrs.first_slice() + i].tensor;
    if (!slices.type().is_list()) limit = std::min(limit, slices.type().sizes()[0]);
  }
  // Checks before the first iteration rather than after the last.
  if (const auto known = expected()) checked_i32(*known, "loop", "the number of iterations");
  if (!attrs.entry_dims.empty() && attrs.cond) reached_ = zeros(attrs.entry_dims, i32);
}

Tensor Iterations::live_at(std::int64_t position) const {
  if (!lengths_.is_defined()) return {};
  return less(scalar(step_at(position), lengths_.dtype()), lengths_);
}

Dim Iterations::made_dim() const {
  if (attrs_.new_dim.empty()) return Dim(count_);
  if (attrs_.makes_lengths()) return Dim(attrs_.new_dim, reached_);
  return Dim(attrs_.new_dim, scalar(count_, i64));
}

Tensor Iterations::token(const Dim& made) const {
  return Tensor(
      allocate_block(TensorType(boolean, {made.is_named() ? Dim("none", 0) : Dim(0), made})));
}

}  // namespace reel
