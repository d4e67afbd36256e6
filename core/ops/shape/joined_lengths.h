// core/ops/shape/joined_lengths.h — JoinedLengths, ragged dims of tensors that are joined along an
// axis.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// For concat along `words`, where lengths of `letters` run over words: the result has a Dim
/// `letters` with the lengths of all words, one behind another.
///
/// Dims of several tensors are joined if they are one Dim or slices of one, or if they have one
/// name and lengths over the axis of their tensor. A tensor with letters that have no lengths along
/// the axis counts as full.
class JoinedLengths {
 public:
  /// Returns nothing if the tensors have no such dim, or if dims do not fit, which concat refuses.
  static std::optional<JoinedLengths> of(const Tensors& tensors, int axis);

  /// Returns the tensors with dims in the order of the first one. Joined dims have one extent, and
  /// padding is zero.
  const Tensors& extended() const { return extended_; }
  /// Returns the joined tensor x with its joined dims. joined: the dim of the axis.
  Tensor with_lengths(const Tensor& x, const Dim& joined) const;

 private:
  /// A dim of the result, and of each tensor.
  struct Joined {
    Dims dims;
    Dim extent;
  };
  JoinedLengths() = default;
  Tensor lengths_of(const Joined& joined, std::size_t tensor) const;

  std::vector<TensorType> types_;  ///< of the tensors, in order, before they were extended
  int axis_ = 0;
  std::vector<Joined> joined_;  ///< lengths of one run over those before it at most
  std::vector<DimChanges> to_extents_;
  Tensors extended_;
};

}  // namespace reel
