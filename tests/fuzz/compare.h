// tests/fuzz/compare.h — are results the same?
#pragma once

#include <optional>
#include <string>

#include "reel/core/tensor.h"

namespace reel::fuzz {

/// Every bit but the sign of zeros: where nothing comes from a branch that was not taken, one mode
/// adds zeros, and another nothing.
inline constexpr double kAnyZero = 1e-300;

/// How results differ, first of all; elements that are padding do not count. tolerance: relative to
/// the largest element, 0 for equal bits.
/// finite_only: leaves out elements that either has as NaN or infinite.
std::optional<std::string> difference(const Tensors& expected, const Tensors& actual,
                                      double tolerance = 0, bool finite_only = false);

/// All elements that count are finite.
bool are_finite(const Tensors& tensors);

/// The sum of products of elements that count, over all floats.
double dot(const Tensors& a, const Tensors& b);

}  // namespace reel::fuzz
