// core/ops/products/scratch.h — Scratch, memory for the time of a product.
#pragma once

#include <cstdint>

#include "reel/core/types/block.h"
#include "reel/core/types/tensor_type.h"

namespace reel {

/// Returns a type of `bytes` bytes. Thread-safe.
TensorType type_of_bytes(std::int64_t bytes);

/// Memory for a product, from the pools of tensors, because the same sizes recur.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t count)
      : block_(allocate_block(type_of_bytes(count * static_cast<std::int64_t>(sizeof(T))))) {}
  T* get() const { return static_cast<T*>(block_->data); }

 private:
  Ref<TensorBlock> block_;
};

}  // namespace reel
