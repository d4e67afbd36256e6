// core/dim_expression.h — DimExpression, what a dim made by arithmetic was made from.
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/dim.h"

namespace reel {

/// sum: operands + number, which is not negative; difference: operand - number, at least 0;
/// product, floor and ceil: operand * number, operand / number.
enum class DimOperation : std::uint8_t { sum, difference, product, floor, ceil };

/// In normal form: no operand of a sum is a sum, and so on (dim_arithmetic.cpp).
struct DimExpression {
  DimOperation operation;
  Dims operands;  ///< several of a sum only
  std::int64_t number = 0;
};

/// The expression, or null for dims that were not computed.
inline const DimExpression* expression_of(const Dim& dim) {
  return dim.node() ? dim.node()->expression.get() : nullptr;
}
/// As it prints: (time+1)*2.
std::string text_of(const DimExpression& expression);
/// The same expression of other operands; in normal form again, and found again.
Dim recompute(const DimExpression& expression, const Dims& operands);
/// For DimNode: the node is about to be freed, and is found no more.
void forget_computed(const DimNode* node);

}  // namespace reel
