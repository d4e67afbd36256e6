// trace/executors/loop/stack_writer.h — StackWriter: collects the slices of one stack of a loop.
#pragma once

#include <optional>

#include "reel/core/types/tensor.h"

namespace reel {

/// Writes one dense stack of a loop, slice by slice. If the dim is known, each slice is copied to
/// its place while it is in the cache. Otherwise slices are collected and stacked at the end.
class StackWriter {
 public:
  /// dim: the stack's dim, if its size is known already. what: memory class of the stack.
  StackWriter(std::optional<Dim> dim, MemoryClass what)
      : dim_(std::move(dim)), what_(what), begin_(next_block_id()) {}

  /// Stores the slice of an iteration. Throws ShapeError if slices have different types. Requires
  /// consecutive positions, upwards from 0 or downwards to 0.
  void put(std::int64_t position, Tensor slice);
  bool is_empty() const { return high_ == 0; }
  /// Returns the stack along `dim`, with zeros at positions without a slice. Requires at least one
  /// slice.
  Tensor finish(const Dim& dim);

 private:
  Tensor in_order(Tensor slice) const;
  char* at(std::int64_t position) const { return whole_.data<char>() + position * slice_.bytes(); }

  std::optional<Dim> dim_;
  MemoryClass what_;
  std::uint64_t begin_;
  TensorType slice_{f32};                        // of the first slice
  Tensor whole_;                                 // if the dim is known
  Tensors slices_;                               // otherwise
  std::int64_t first_ = 0, low_ = 0, high_ = 0;  // the positions that have a slice
};

}  // namespace reel
