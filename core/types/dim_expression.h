// core/types/dim_expression.h — DimExpression, the formula of a dim made by arithmetic.
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"

REEL_API_BEGIN
namespace reel {

/// sum: operands + number, number >= 0. difference: max(operand - number, 0), or max(first -
/// second, 0). product: operands * number. quotient: first / number, or first / (second * number),
/// without remainder. floor and ceil: operand / number, rounded down and up.
enum class DimOperation : std::uint8_t { sum, difference, product, quotient, floor, ceil };

/// In normal form: no operand of a sum is a sum, and so on (dim_arithmetic.cpp).
struct DimExpression {
  DimOperation operation;
  Dims operands;  ///< any number for a sum and a product; two at most for other operations
  std::int64_t number = 0;
};

/// Returns the expression, or null if the dim was not computed.
inline const DimExpression* expression_of(const Dim& dim) {
  return dim.node() ? dim.node()->expression.get() : nullptr;
}
/// A dim as a multiple of another one.
struct DimMultiple {
  Dim of;
  std::int64_t times = 1;
};
/// Returns {time, 2} for time * 2, and {dim, 1} for a dim that is no product with a number alone.
inline DimMultiple multiple_of(const Dim& dim) {
  const DimExpression* expression = expression_of(dim);
  if (!expression || expression->operation != DimOperation::product ||
      expression->operands.size() > 1)
    return {dim, 1};
  return {expression->operands[0], expression->number};
}
/// Returns the expression as it prints: (time+1)*2.
std::string text_of(const DimExpression& expression);
/// Returns the dim of the same expression over other operands, in normal form. Equal expressions
/// give the same dim.
Dim recompute(const DimExpression& expression, const Dims& operands);

}  // namespace reel
REEL_API_END
