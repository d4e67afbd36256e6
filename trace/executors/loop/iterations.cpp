#include "reel/trace/executors/loop/iterations.h"

#include <climits>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/types/sizes.h"

namespace reel {

Iterations::Iterations(const LoopAttrs& attrs, OpInputs in) : limit(INT64_MAX), attrs_(attrs) {
  const auto operands = operands_of(attrs, in);
  if (operands.bound) limit = std::max<std::int64_t>(integer_of(*operands.bound->tensor), 0);
  if (operands.chunk) {
    const std::int64_t* chunk = operands.chunk->tensor->data<std::int64_t>();
    first_ = chunk[0];
    all_ = chunk[1];
  }
  if (operands.lengths) lengths_ = *operands.lengths->tensor;
  for (const OpInput& slices : operands.slices)
    if (const TensorType& type = slices.tensor->type(); !type.is_list()) {
      const std::int64_t size = type.sizes()[0];
      if (size < 0) throw InternalError(str("no run told the number of slices ", type));
      limit = std::min(limit, size);
    }
  // Checks before the first iteration rather than after the last.
  if (const auto known = expected()) checked_i32(*known, "loop", "the number of iterations");
  if (attrs.makes_lengths()) reached_ = zeros(attrs.entries.dims, i32);
}

Tensor Iterations::running_at(std::int64_t position) const {
  if (!lengths_.is_defined()) return {};
  return mask_padding(less(scalar(step_at(position), lengths_.dtype()), lengths_));
}

Dim Iterations::made_dim() const {
  if (attrs_.trips.new_dim.empty()) return Dim(count_);
  if (attrs_.makes_lengths()) return Dim(attrs_.trips.new_dim, reached_);
  return Dim(attrs_.trips.new_dim, scalar(count_, i64));
}

Tensor Iterations::token(const Dim& made) const {
  return Tensor(
      allocate_block(TensorType(boolean, {made.is_named() ? Dim("none", 0) : Dim(0), made})));
}

}  // namespace reel
