// onnx/ops/sizes.h — sizes as values: known numbers, or axes with sizes that only a run knows.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

inline bool is_known(const Dims& sizes) {
  for (const Dim& size : sizes)
    if (!size.has_size()) return false;
  return true;
}
/// Returns a placeholder in Value::sizes for a number that is computed from sizes: no axis has it.
Dim computed_size();
/// Returns true if an input holds sizes, and any of them is a computed_size().
bool holds_computed_size(const Call& call, std::size_t input);
/// Returns known sizes as numbers. Throws TraceError for a size that only a run knows.
std::vector<std::int64_t> numbers_of(const Dims& sizes);
/// Returns true if Call::known_sizes succeeds for an input: it holds constants, or sizes of axes.
bool holds_known_sizes(const Call& call, std::size_t input);

/// Returns a vector of i64 with these sizes; a constant if all are known.
Value value_of_sizes(const Dims& sizes);
/// Returns one size as a scalar i64.
Value value_of_size(const Dim& size);

/// Returns a tensor with one element as a scalar.
Tensor scalar_of(const Tensor& x);
/// An integer that a trace may know.
struct Number {
  std::optional<std::int64_t> known;
  Tensor traced;  ///< a scalar i64, if only a run knows the number
};
/// Returns the elements of an input that is a vector of integers. Follows the node that joins it:
/// if only a run knows the vector, a trace may know some of its parts.
std::vector<Number> elements_of(const Call& call, std::size_t input);
/// Returns an axis of unknown size, which a run finds in a tensor with one number. The run throws
/// AssertionError unless the number is at least 0 and below 2^31.
Dim size_of_a_run(const Tensor& size);
/// Returns such an axis without an assertion. Requires: the number is at least 0 and below 2^31.
Dim bounded_size_of_a_run(const Tensor& size);

/// Returns new axes with the sizes that an input holds, a vector of integers: constants, sizes of
/// other axes, or numbers that only a run knows.
Dims new_axes(const Call& call, std::size_t input);

/// Returns the elements of x, in row-major order, with plain sizes. Sizes that only a run knows may
/// be sizes of axes of x; one may follow from the other sizes.
Tensor reshape_to(const Tensor& x, const Dims& sizes);

}  // namespace reel::imported
