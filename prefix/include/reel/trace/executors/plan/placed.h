// trace/executors/plan/placed.h — tensors whose data lie in the memory of a plan.
#pragma once

#include <cstring>

#include "reel/core/tensor.h"

namespace reel {

/// A tensor over memory of a plan, for as long as it stays there.
inline Tensor placed(const TensorType& type, void* data) {
  return Tensor(allocate_placed(type, data));
}

/// A tensor whose data lie in a plan's memory, or are a view of such: valid as long as the plan
/// leaves them there.
inline bool lies_in_plan(const Tensor& tensor) {
  const TensorBlock* block = tensor.block();
  const TensorBlock* owner = block->storage ? block->storage.get() : block;
  return owner->kind == BlockKind::view;
}

inline void copy_elements(void* to, const Tensor& from) {
  if (const auto bytes = static_cast<std::size_t>(from.type().bytes()))
    std::memcpy(to, from.data<void>(), bytes);
}

/// The tensor, or a copy of one that lies in a plan.
inline Tensor owned(const Tensor& tensor) {
  if (!tensor.is_defined() || !lies_in_plan(tensor)) return tensor;
  Tensor copy(allocate_block(tensor.type()));
  copy_elements(copy.data<void>(), tensor);
  return copy;
}

}  // namespace reel
