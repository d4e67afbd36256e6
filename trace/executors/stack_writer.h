// trace/executors/stack_writer.h — StackWriter, what the iterations of a loop stack up.
#pragma once

#include <optional>

#include "reel/core/tensor.h"

namespace reel {

/// One stack output of a loop, slice by slice. Where the dim is known beforehand, a slice goes into
/// its place while it is in the cache; else the slices are kept, and stacked at the end.
class StackWriter {
 public:
  /// dim: of the stack, if its size is known already. what: the memory is for.
  StackWriter(std::optional<Dim> dim, MemoryClass what)
      : dim_(std::move(dim)), what_(what), begin_(next_block_id()) {}

  /// Positions come one after the other, upwards from 0 or downwards to it. Throws ShapeError where
  /// slices differ.
  void put(std::int64_t position, Tensor slice);
  bool is_empty() const { return high_ == 0; }
  /// The slices along `dim`; zeros at positions that had none. There must be one at least.
  Tensor finish(const Dim& dim);

 private:
  Tensor in_order(Tensor slice) const;
  char* at(std::int64_t position) const { return whole_.data<char>() + position * slice_.bytes(); }

  std::optional<Dim> dim_;
  MemoryClass what_;
  std::uint64_t begin_;
  TensorType slice_{f32};                        // of the first slice
  Tensor whole_;                                 // where the dim is known
  Tensors slices_;                               // else
  std::int64_t first_ = 0, low_ = 0, high_ = 0;  // which positions have a slice
};

}  // namespace reel
