// onnx/stored.h — numbers as the element types of ONNX store them.
#pragma once

#include <string>

#include "reel/onnx/element_type.h"

namespace reel::imported {

/// How numbers are stored that a type does not have.
struct StoreOptions {
  /// For float8: a number beyond the largest one becomes the largest; otherwise infinity, or NaN if
  /// the type has no infinity.
  bool saturates = true;
  std::string round_mode = "up";    ///< of float8e8m0: up, down or nearest
  bool truncates_bfloat16 = false;  ///< bits are cut off, as ONNX 1.12 did; otherwise rounded
};

/// Returns x with every element as the type stores it. Integers of fewer bits wrap around. Floats
/// are rounded to nearest, halves to even. The gradient passes through, since rounding has none.
/// float4e2m1 saturates. x: the dtype of the type, or f64 for a type of fewer bits than f32.
Tensor stored_as(const Tensor& x, ElementType type, const StoreOptions& options = {});

/// Returns integers limited to the range of an integer type.
Tensor saturated(const Tensor& x, ElementType type);

/// Returns the number that an element of a type of 16 bits or fewer has. bits: as in a file.
/// Requires: a floating-point type.
float number_of_bits(std::uint32_t bits, ElementType type);

}  // namespace reel::imported
