// tests/fuzz/compare.h — comparison of results.
#pragma once

#include <optional>
#include <string>

#include "reel/core/types/tensor.h"

namespace reel::fuzz {

/// A tolerance for equal bits except signs of zeros: for a branch not taken, one mode adds zeros,
/// and another adds nothing.
inline constexpr double kAnyZero = 1e-300;

/// Returns a description of the first difference; empty if there is none. Padding does not count.
/// tolerance: relative to the largest element; 0 requires equal bits.
/// finite_only: leaves out elements that are NaN or infinite in either result.
std::optional<std::string> difference(const Tensors& expected, const Tensors& actual,
                                      double tolerance = 0, bool finite_only = false);

/// Returns the largest difference of valid elements, relative to the largest element of `expected`;
/// infinity if types or lengths differ, or if an element is NaN or infinite in one tensor alone.
double distance(const Tensor& expected, const Tensor& actual);

/// True if all valid elements are finite.
bool are_finite(const Tensors& tensors);

/// Returns the sum of products of valid elements, over all float tensors.
double dot(const Tensors& a, const Tensors& b);

}  // namespace reel::fuzz
