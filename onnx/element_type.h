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
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26
};

/// Prints the name that ONNX uses in its schemas: float, uint8, bfloat16.
std::ostream& operator<<(std::ostream& out, ElementType type);

/// Returns the dtype that holds every value of the type; i64 for uint64: its values from 2^63 on
/// are refused. Returns nothing for strings, complex numbers and unknown types.
std::optional<DType> dtype_of(ElementType type);
/// Returns the type that a tensor of this dtype has unless stated otherwise.
ElementType element_type_of(DType dtype);

bool is_float(ElementType type);
bool is_integer(ElementType type);

/// Returns the bits of an element in a file.
int bits_of(ElementType type);
/// Returns true for floating-point types of 8 bits and fewer. Their initializers are constants.
bool is_tiny_float(ElementType type);

}  // namespace reel::imported
