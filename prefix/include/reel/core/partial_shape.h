// core/partial_shape.h — PartialShape, a shape of which some sizes, or the rank, may be unknown.
#pragma once

#include <initializer_list>
#include <iosfwd>

#include "reel/core/tensor_type.h"

namespace reel {

/// Dims of which some are `unknown`: what a state of a loop promises about its shape (TensorFlow's
/// TensorShape).
class PartialShape {
 public:
  PartialShape() = default;
  PartialShape(std::initializer_list<Dim> dims) : dims_(dims) {}
  PartialShape(const Dims& dims) : dims_(dims) {}
  static PartialShape unknown_rank() {
    PartialShape shape;
    shape.has_rank_ = false;
    return shape;
  }

  bool has_rank() const { return has_rank_; }
  const Dims& dims() const { return dims_; }
  /// Whether dims are at least as specific: of equal rank, and equal wherever this shape says
  /// something.
  bool allows(const Dims& dims) const;

 private:
  Dims dims_;
  bool has_rank_ = true;
};
std::ostream& operator<<(std::ostream& out, const PartialShape& shape);

/// x, of which the caller knows that it has this shape. Where a trace knows less, the result's type
/// says so from there on; a run checks. Throws ShapeError when x has another shape.
Tensor ensure_shape(const Tensor& x, const PartialShape& shape);

// Below: for the library itself.
/// x, of which a trace forgets the sizes that the shape does not say: the opposite of ensure_shape.
Tensor relax_shape(const Tensor& x, const PartialShape& shape);

}  // namespace reel
