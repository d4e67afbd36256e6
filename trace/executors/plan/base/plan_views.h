// trace/executors/plan/base/plan_views.h — tensors with data in a plan's memory.
#pragma once

#include <cstring>
#include <utility>

#include "reel/core/types/tensor.h"

namespace reel {

/// Returns a tensor over memory of a plan. Does not own the data, which must outlive it.
inline Tensor placed(const TensorType& type, void* data) {
  return Tensor(allocate_placed(type, data));
}

/// Returns true if the tensor, or the tensor that it views, lies in a plan's memory. It is valid
/// until the plan overwrites the memory.
inline bool lies_in_plan(const Tensor& tensor) {
  const TensorBlock* block = tensor.block();
  const TensorBlock* owner = block->storage ? block->storage.get() : block;
  return owner->kind == BlockKind::view;
}

inline void copy_elements(void* to, const Tensor& from) {
  if (const auto bytes = static_cast<std::size_t>(from.type().bytes()))
    std::memcpy(to, from.data<void>(), bytes);
}

/// Returns the tensor, or a copy with its own memory if it lies in a plan's memory.
inline Tensor owned(const Tensor& tensor) {
  if (!tensor.is_defined() || !lies_in_plan(tensor)) return tensor;
  Tensor copy(allocate_block(tensor.type()));
  copy_elements(copy.data<void>(), tensor);
  return copy;
}
inline Tensor owned(Tensor&& tensor) {
  if (!tensor.is_defined() || !lies_in_plan(tensor)) return std::move(tensor);
  return owned(std::as_const(tensor));
}

}  // namespace reel
