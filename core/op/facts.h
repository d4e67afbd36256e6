// core/op/facts.h — what an op tells of zeros, failures, padding, views and work, with the
// defaults.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reel/core/base/visibility.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/op.h"

REEL_API_BEGIN
namespace reel {

/// Returns the bit set of the operands for which is(i) is true; bit 31 if it is for all from 31 on.
template <class Is>
std::uint32_t operand_bits(std::size_t operands, Is is) {
  std::uint32_t result = kAll;
  for (std::size_t i = 0; i < operands; ++i)
    if (!is(i)) result &= ~(1u << std::min<std::size_t>(i, 31));
  return result;
}

/// Returns true if the results are zero whenever these operands are (operand_bits()). An op
/// without `zero_if` gives zero for zeros if it is linear with constant coefficients: its gradient
/// then reads neither operands nor results.
///
/// operands: their number.
bool gives_zero(const Op& op, const Attrs* attrs, std::uint32_t zeros, std::size_t operands);
/// Returns true if all elements of the results are zero whatever the operands are.
inline bool makes_zeros(const Op& op, const Attrs* attrs) {
  return op.zero_if && op.zero_if(attrs, 0);
}

/// Returns true if the results are linear in some operands together: the gradient reads neither
/// these operands nor the results, and if these operands are zero, the results are.
///
/// in: these operands (operand_bits()). zeros: other operands that are zero. operands: the number
/// of all operands.
bool is_linear_in(const Op& op, const Attrs* attrs, std::uint32_t in, std::uint32_t zeros,
                  std::size_t operands);

/// Returns the possible causes of failure. Pointwise ops never fail. Other ops without `fails`, and
/// ops with effects, may fail for values of any operand.
Failures failures_of(const Op& op, const Attrs* attrs);
/// Returns true if values of operands can make the call fail. Sizes and dtypes are no values.
inline bool fails_for_values(const Op& op, const Attrs* attrs) {
  return failures_of(op, attrs).values != 0;
}

/// Returns how results depend on padding. Pointwise ops keep it apart.
inline Padding padding_of(const Op& op) {
  return op.pointwise && op.padding == Padding::shown ? Padding::apart : op.padding;
}
/// Returns true if a result of input 0's type may lie where input 0 does.
inline bool may_lie_on_input(const Op& op) { return op.works_in_place || op.updates_input; }
/// Returns true if a result has an axis that no operand has, along which its elements repeat.
bool repeats_elements(const OpCall& call);
/// Returns true if the op neither combines elements along an axis nor takes or moves some of them.
inline bool keeps_elements_apart(const Op& op) {
  return padding_of(op) == Padding::apart || padding_of(op) == Padding::selected;
}

/// Returns false if results are certain to have storage of their own: OpStorage::own, or
/// OpStorage::input if the kernel copies for these types. A reduction over more than one element,
/// a transpose that moves elements and a slice of inner axes copy. Requires known sizes.
bool makes_view(const OpCall& call);

/// Returns true for a contraction of two tensors, packed or not.
inline bool is_product(const Op& op) { return op.multiplications != nullptr; }
/// Returns the number of multiplications of a product; 0 for other ops, and for unknown sizes.
inline std::int64_t multiplications(const OpCall& call) {
  return is_product(call.op) ? call.op.multiplications(call) : 0;
}

}  // namespace reel
REEL_API_END
