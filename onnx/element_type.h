// onnx/element_type.h — ElementType, the element types of ONNX, and their Reel dtypes.
#pragma once

#include <optional>
#include <ostream>

#include "reel/core/types/tensor.h"

namespace reel::imported {

/// Has the numbers of TensorProto.DataType.
enum class ElementType {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16
};

/// Prints the name that ONNX uses in its schemas: float, uint8, bfloat16.
std::ostream& operator<<(std::ostream& out, ElementType type);

/// Returns the dtype that holds every value of the type; i64 for uint64, whose values from 2^63 on
/// are refused. Returns nothing for strings, complex numbers and unknown types.
std::optional<DType> dtype_of(ElementType type);
/// Returns the type that a tensor of this dtype has unless stated otherwise.
ElementType element_type_of(DType dtype);

bool is_float(ElementType type);
bool is_integer(ElementType type);

/// Returns x with every element as the type stores it. Integers of fewer bits wrap around, float16
/// is rounded to nearest, halves to even, and bfloat16 is cut off, as ONNX 1.12 does. x: the dtype
/// of the type.
Tensor stored_as(const Tensor& x, ElementType type);

}  // namespace reel::imported
