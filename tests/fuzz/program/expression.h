// tests/fuzz/program/expression.h — Expression, an instruction whose text is the code that computes
// it.
#pragma once

#include <functional>

#include "reel/core/dims/axis.h"
#include "reel/core/ops.h"
#include "reel/core/options/checkpoint_policy.h"
#include "reel/tests/fuzz/machine.h"
#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {

/// The names that an expression may use. In the printed program, each is replaced by the operand or
/// attribute of the instruction.
struct Operands {
  Tensor a, b, c;
  TensorArray list;
  Axes axes;
  Axis axis;  ///< the first of axes
  Dims dims;
  Dim to;  ///< the first of dims
  std::int64_t n, m;
  double x;
  DType real;
  Checkpoint keep;  ///< the policy of the expression's loops
  SwapMemory swap;
};

struct Expression {
  const char* text;
  Slot (*compute)(const Operands&);
};

#define REEL_EXPRESSION(...)                                                         \
  ::reel::fuzz::Expression {                                                         \
#__VA_ARGS__, [](const ::reel::fuzz::Operands& operands) -> ::reel::fuzz::Slot {   \
      [[maybe_unused]] const auto& [a, b, c, list, axes, axis, dims, to, n, m, x, real, keep, swap] = \
          operands;                                                                    \
      return ::reel::fuzz::Slot(__VA_ARGS__);                                          \
    } \
  }

/// Chooses inputs, attributes and the type of the output. Returns false if no operands fit.
using Typing = std::function<bool(Drafter&, Instruction&)>;

class ExpressionRule : public Rule {
 public:
  ExpressionRule(Expression expression, int weight, Typing typing)
      : Rule(expression.text, weight), expression_(expression), typing_(std::move(typing)) {}

  bool draft(Drafter& drafter, Instruction& instruction) const override {
    return typing_(drafter, instruction);
  }
  void run(const Instruction& instruction, Machine& machine) const override;
  /// Returns the operands and attributes that run() computes with.
  static Operands operands_of(const Instruction& instruction, Machine& machine);
  Slot compute(const Operands& operands) const { return expression_.compute(operands); }
  void print(const Instruction& instruction, Printer& printer) const override;

 private:
  Expression expression_;
  Typing typing_;
};

}  // namespace reel::fuzz
