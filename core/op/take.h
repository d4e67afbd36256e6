// core/op/take.h — may_take and take: an input of an op gives its buffer to a result.
#pragma once

#include "reel/core/op/op.h"

namespace reel {

/// Returns true if take_or_allocate() takes this input for a result of the type: a temporary of
/// this type with a reference count of one, which has its own data and no attachment.
inline bool may_take(const OpInput& input, const TensorType& type) {
  if (!input.temporary) return false;
  const TensorBlock* block = input.tensor->block();
  return block->type == type && block->kind == BlockKind::dense && input.tensor->ref().unique() &&
         !block->attachment;
}

/// Takes the tensor of an input for a result. Requires may_take() for the type of the result.
inline Tensor take(const OpInput& input) {
  input.tensor->block()->id = next_block_id();  // the block holds a new value from here on
  return std::move(const_cast<Tensor&>(*input.tensor));
}

}  // namespace reel
