// core/types/valid_elements.h — ValidElements, which elements of a tensor count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reel/core/types/tensor.h"

namespace reel {

/// Tells which elements of a tensor count: those that are no padding and belong to a running entry.
class ValidElements {
 public:
  /// Requires eager lengths of ragged dims.
  /// running: booleans over entries. A mask may have dims that the type lacks: an element
  /// then counts if any of their entries runs. A mask without a dim of the type has no effect.
  ValidElements(const TensorType& type, std::span<const Tensor> running);

  /// True if every element counts.
  bool are_all() const { return ragged_.empty() && running_.empty(); }
  /// Returns true if the element at this index counts.   index: a position for each axis.
  bool operator()(std::span<const std::int64_t> index) const;

 private:
  /// A ragged axis of a type that also has the dims of its lengths.
  struct RaggedAxis {
    std::size_t axis;
    const std::int32_t* lengths;
    std::vector<std::int64_t> strides;  ///< of the lengths, by axes of the type
  };
  /// Booleans over some axes of a type.
  struct RunningMask {
    std::vector<std::uint8_t> values;
    std::vector<std::int64_t> strides;  ///< by axes of the type
  };
  void add_ragged_axes(const TensorType& type);
  void add_mask(const TensorType& type, const Tensor& mask);

  std::vector<RaggedAxis> ragged_;
  std::vector<RunningMask> running_;
};

}  // namespace reel
