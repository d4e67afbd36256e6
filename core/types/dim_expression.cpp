#include "reel/core/types/dim_expression.h"

#include "reel/core/base/str.h"

namespace reel {
namespace {

/// Returns the text of an operand, in parentheses if its operation binds less than `than`.
std::string text_of_operand(const Dim& dim, DimOperation than) {
  const DimExpression* inner = expression_of(dim);
  if (!inner) return dim.name();
  const std::string text = text_of(*inner);
  const bool is_apart =
      inner->operation <= DimOperation::difference && than >= DimOperation::product;
  return is_apart ? str('(', text, ')') : text;
}

/// Returns the text of a second operand, in parentheses unless it is a name or a function.
std::string text_of_second(const Dim& dim) {
  const DimExpression* inner = expression_of(dim);
  if (!inner) return dim.name();
  return inner->operation == DimOperation::ceil ? text_of(*inner) : str('(', text_of(*inner), ')');
}

}  // namespace

std::string text_of(const DimExpression& expression) {
  const Dims& operands = expression.operands;
  const std::int64_t n = expression.number;
  const bool is_pair = operands.size() > 1;
  std::string text = expression.operation == DimOperation::ceil
                         ? text_of_operand(operands[0], DimOperation::sum)
                         : text_of_operand(operands[0], expression.operation);
  switch (expression.operation) {
    case DimOperation::sum:
      for (std::size_t i = 1; i < operands.size(); ++i)
        text += '+' + text_of_operand(operands[i], DimOperation::sum);
      return n ? str(text, '+', n) : text;
    case DimOperation::difference:
      return is_pair ? str(text, '-', text_of_second(operands[1])) : str(text, '-', n);
    case DimOperation::product:
      for (std::size_t i = 1; i < operands.size(); ++i) text += '*' + text_of_second(operands[i]);
      return n == 1 ? text : str(text, '*', n);
    case DimOperation::quotient:
      // As code that does not round: time / 2 does.
      if (!is_pair) return str(text, "/Dim(", n, ')');
      return n == 1 ? str(text, '/', text_of_second(operands[1]))
                    : str(text, "/(", text_of_operand(operands[1], DimOperation::product), '*', n,
                          ')');
    case DimOperation::floor:
      return str(text, '/', n);
    default:
      return str("ceildiv(", text, ',', n, ')');
  }
}

}  // namespace reel
