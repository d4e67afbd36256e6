// core/op/take.h — may_take, whether an input of an op may give its buffer to a result.
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

}  // namespace reel
