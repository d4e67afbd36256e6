// core/ops/convolutions/conv_axes.h — which axes of the three tensors of a convolution are of which
// kind, and the type rules of the three ops.
#pragma once

#include <cstdint>

#include "reel/core/ops/convolutions/convolutions.h"

namespace reel {

/// The three tensors of the trilinear form.
enum class ConvOperand : std::uint8_t { x, f, y };

/// The axes of one tensor, x, f or y.
class ConvAxesOf {
 public:
  ConvAxesOf(const ConvAttrs& attrs, ConvOperand which, int rank)
      : attrs_(attrs), which_(which), rank_(rank) {}
  int spatial() const { return groups() - attrs_.spatial(); }
  int groups() const { return channels() - attrs_.groups; }
  /// Returns the first of the ins, or of the outs of y.
  int channels() const {
    return rank_ - (which_ == ConvOperand::y ? attrs_.outs : attrs_.ins) -
           (which_ == ConvOperand::f ? attrs_.outs : 0);
  }
  /// Returns the first of the outs. Requires f or y.
  int outs() const { return rank_ - attrs_.outs; }
  /// Returns the first axis of rows. Requires x or y.
  int rows() const { return attrs_.batch; }
  int row_count() const { return spatial() - attrs_.batch; }

 private:
  const ConvAttrs& attrs_;
  ConvOperand which_;
  int rank_;
};

/// The operands and the result of an op.
struct ConvRoles {
  ConvOperand first, second, out;
};
inline ConvRoles conv_roles(const Op& op) {
  if (&op == &conv_op) return {ConvOperand::x, ConvOperand::f, ConvOperand::y};
  if (&op == &conv_input_op) return {ConvOperand::y, ConvOperand::f, ConvOperand::x};
  return {ConvOperand::x, ConvOperand::y, ConvOperand::f};
}

void conv_type(TypeArgs& args);
void conv_input_type(TypeArgs& args);
void conv_filter_type(TypeArgs& args);

/// Returns the number of elements along axes first, ..., first + count - 1.
inline std::int64_t product_of(const TensorType& type, int first, int count) {
  std::int64_t result = 1;
  for (int axis = first; axis < first + count; ++axis)
    result *= type.sizes()[static_cast<std::size_t>(axis)];
  return result;
}

}  // namespace reel
