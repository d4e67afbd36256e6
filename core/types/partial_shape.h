// core/types/partial_shape.h — PartialShape, a shape with unknown sizes or unknown rank.
#pragma once

#include <initializer_list>
#include <iosfwd>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// Dims, some of which may be `unknown`: the shape that a loop's state is required to keep
/// (TensorFlow's TensorShape).
class PartialShape {
 public:
  PartialShape() = default;
  PartialShape(std::initializer_list<Dim> dims) : dims_(dims) {}
  PartialShape(const Dims& dims) : dims_(dims) {}
  /// Returns a shape that allows every rank (WhileOptions::shape_invariants has the rules).
  static PartialShape unknown_rank() {
    PartialShape shape;
    shape.has_rank_ = false;
    return shape;
  }

  /// Returns false for unknown_rank().
  bool has_rank() const { return has_rank_; }
  /// Returns the dims; none if the rank is unknown.
  const Dims& dims() const { return dims_; }
  /// Returns true if the dims have the same rank and equal every known dim of this shape.
  bool allows(const Dims& dims) const;

 private:
  Dims dims_;
  bool has_rank_ = true;
};
std::ostream& operator<<(std::ostream& out, const PartialShape& shape);

/// Returns x and asserts its shape. In a trace, the result's type has these dims, and each run
/// checks them. x may have an unknown rank. Throws ShapeError if x has another shape.
Tensor ensure_shape(const Tensor& x, const PartialShape& shape);

// Below: for the library itself.
/// Returns x with the sizes forgotten, in a trace, that the shape leaves unknown: the opposite of
/// ensure_shape.
Tensor relax_shape(const Tensor& x, const PartialShape& shape);

}  // namespace reel
REEL_API_END
