// Writers of element-wise ops.
#include "reel/core/ops.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

DType dtype_of(const WriteCall& call) { return call.type_in(0).dtype(); }
Name literal(const WriteCall& call, double value) {
  return call.to.model().number(value, dtype_of(call));
}
/// Adds a node with the operands, aligned, as inputs.
Name with_operands(const WriteCall& call, const std::string& op,
                   const Attributes& attributes = {}) {
  Names inputs;
  for (std::size_t i = 0; i < call.count_in(); ++i) inputs.push_back(call.aligned(i));
  return call.to.add(op, inputs, attributes);
}

template <const auto& kOp>
Names write_node(const WriteCall& call) {
  return {with_operands(call, kOp)};
}

// ---- One operand --------------------------------------------------------------------------------

/// Integers are whole already.
template <const auto& kOp>
Names write_rounding(const WriteCall& call) {
  return {is_integer(dtype_of(call)) ? call.in(0) : call.to.add(kOp, {call.in(0)})};
}
Names write_square(const WriteCall& call) { return {call.to.add("Mul", {call.in(0), call.in(0)})}; }
Names write_relu(const WriteCall& call) {
  if (is_integer(dtype_of(call))) return {call.to.add("Max", {call.in(0), literal(call, 0)})};
  return {call.to.add("Relu", {call.in(0)})};
}

/// onnxruntime lacks Cos for f64, but has Sin.
Names write_cos(const WriteCall& call) {
  GraphWriter& to = call.to;
  if (dtype_of(call) != f64) return {to.add("Cos", {call.in(0)})};
  return {to.add("Sin", {to.add("Add", {call.in(0), literal(call, 1.57079632679489661923)})})};
}

/// exp(x) - 1, or (exp(x) + 1) tanh(x/2) for small x, where the difference would lose digits.
Names write_expm1(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name &x = call.in(0), half = to.add("Mul", {x, literal(call, 0.5)});
  const Name is_small = to.add("Less", {to.add("Abs", {x}), literal(call, 0.5)});
  const Name exp = to.add("Exp", {x}), one = literal(call, 1);
  const Name small = to.add("Mul", {to.add("Add", {exp, one}), to.add("Tanh", {half})});
  return {to.add("Where", {is_small, small, to.add("Sub", {exp, one})})};
}

/// Returns log(1 + x), with the rounding error of 1 + x corrected for small x (Kahan).
Name log1p(const WriteCall& call, const Name& x) {
  GraphWriter& to = call.to;
  const Name one = literal(call, 1), u = to.add("Add", {x, one});
  const Name whole = to.add("Log", {u}), rest = to.add("Sub", {u, one});
  const Name is_one = to.add("Equal", {u, one});
  const Name divisor = to.add("Where", {is_one, one, rest});
  const Name corrected = to.add("Div", {to.add("Mul", {whole, x}), divisor});
  const Name small = to.add("Where", {is_one, x, corrected});
  const Name is_small = to.add("Less", {to.add("Abs", {x}), literal(call, 0.5)});
  return to.add("Where", {is_small, small, whole});
}
Names write_log1p(const WriteCall& call) { return {log1p(call, call.in(0))}; }

/// onnxruntime lacks Softplus for f64: log(1 + exp(-|x|)) + max(x, 0).
Names write_softplus(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name& x = call.in(0);
  if (dtype_of(call) != f64) return {to.add("Softplus", {x})};
  const Name power = to.add("Exp", {to.add("Neg", {to.add("Abs", {x})})});
  return {to.add("Add", {log1p(call, power), to.add("Max", {x, literal(call, 0)})})};
}

/// Φ(x), the distribution function of the normal distribution.
Name normal_distribution(const WriteCall& call, const Name& x) {
  GraphWriter& to = call.to;
  const Name erf = to.add("Erf", {to.add("Mul", {x, literal(call, 0.70710678118654752440)})});
  return to.add("Mul", {to.add("Add", {erf, literal(call, 1)}), literal(call, 0.5)});
}
Names write_gelu(const WriteCall& call) {
  return {call.to.add("Mul", {call.in(0), normal_distribution(call, call.in(0))})};
}

// ---- Two operands -------------------------------------------------------------------------------

/// (1 - y²) g
Names write_tanh_grad(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name y = call.aligned(0), g = call.aligned(1);
  const Name slope = to.add("Sub", {literal(call, 1), to.add("Mul", {y, y})});
  return {to.add("Mul", {slope, g})};
}
/// y (1 - y) g
Names write_sigmoid_grad(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name y = call.aligned(0), g = call.aligned(1);
  const Name slope = to.add("Mul", {y, to.add("Sub", {literal(call, 1), y})});
  return {to.add("Mul", {slope, g})};
}
/// (Φ(x) + x φ(x)) g
Names write_gelu_grad(const WriteCall& call) {
  GraphWriter& to = call.to;
  const Name x = call.aligned(0), g = call.aligned(1);
  const Name power = to.add("Mul", {to.add("Mul", {x, x}), literal(call, -0.5)});
  const Name density =
      to.add("Mul", {to.add("Exp", {power}), literal(call, 0.39894228040143267794)});
  const Name slope = to.add("Add", {normal_distribution(call, x), to.add("Mul", {x, density})});
  return {to.add("Mul", {slope, g})};
}

/// Returns a condition: the remainder is not zero, and its sign is not the divisor's.
Name is_off(const WriteCall& call, const Name& remainder, const Name& divisor) {
  GraphWriter& to = call.to;
  const Name zero = literal(call, 0);
  const Name differs =
      to.add("Xor", {to.add("Less", {remainder, zero}), to.add("Less", {divisor, zero})});
  return to.add("And", {to.logical_not(to.add("Equal", {remainder, zero})), differs});
}
/// Returns true for a constant scalar other than 0.
bool is_nonzero_constant(const ModelWriter& model, const Name& name) {
  for (const Node& node : model.constants()) {
    if (node.name != name) continue;
    const Tensor& value = node.attributes.at("value").tensor.tensor;
    return value.rank() == 0 && cast(value, f64).item<double>() != 0;
  }
  return false;
}

/// Returns divide(a, b). A zero divisor of integers gives 0, as in Reel; ONNX leaves it open, and
/// runtimes may end the process.
template <class Divide>
Names guarded(const WriteCall& call, const Divide& divide) {
  GraphWriter& to = call.to;
  const Name a = call.aligned(0), b = call.aligned(1);
  if (is_float(dtype_of(call)) || is_nonzero_constant(to.model(), b)) return {divide(a, b)};
  const Name is_zero = to.add("Equal", {b, literal(call, 0)});
  const Name divisor = to.add("Where", {is_zero, literal(call, 1), b});
  return {to.add("Where", {is_zero, literal(call, 0), divide(a, divisor)})};
}

Names write_div(const WriteCall& call) {
  return guarded(call, [&](const Name& a, const Name& b) { return call.to.add("Div", {a, b}); });
}
Names write_remainder(const WriteCall& call) {
  return guarded(call, [&](const Name& a, const Name& b) {
    return call.to.add("Mod", {a, b}, {{"fmod", integer(1)}});
  });
}
Names write_floor_divide(const WriteCall& call) {
  return guarded(call, [&](const Name& a, const Name& b) {
    GraphWriter& to = call.to;
    const Name quotient = to.add("Div", {a, b});
    if (is_float(dtype_of(call))) return to.add("Floor", {quotient});
    const Name remainder = to.add("Sub", {a, to.add("Mul", {quotient, b})});
    return to.add("Sub", {quotient, to.cast(is_off(call, remainder, b), dtype_of(call))});
  });
}
/// The remainder with the sign of the divisor.
Names write_mod(const WriteCall& call) {
  return guarded(call, [&](const Name& a, const Name& b) {
    GraphWriter& to = call.to;
    if (is_integer(dtype_of(call))) return to.add("Mod", {a, b});
    const Name remainder = to.add("Mod", {a, b}, {{"fmod", integer(1)}});
    return to.add("Where", {is_off(call, remainder, b), to.add("Add", {remainder, b}), remainder});
  });
}

/// Comparisons of booleans compare 0 and 1.
template <const auto& kOp>
Names write_comparison(const WriteCall& call) {
  Name a = call.aligned(0), b = call.aligned(1);
  if (dtype_of(call) == boolean) a = call.to.cast(a, i32), b = call.to.cast(b, i32);
  return {call.to.add(kOp, {a, b})};
}
Names write_not_equal(const WriteCall& call) {
  return {call.to.logical_not(with_operands(call, "Equal"))};
}

Names write_where(const WriteCall& call) {
  return {
      call.to.where(call.aligned(0), call.aligned(1), call.aligned(2), call.type_out().dtype())};
}
Names write_cast(const WriteCall& call) {
  return {call.to.cast(call.in(0), call.type_out().dtype())};
}

constexpr char kNeg[] = "Neg", kAbs[] = "Abs", kSign[] = "Sign", kExp[] = "Exp", kLog[] = "Log",
               kSqrt[] = "Sqrt", kSin[] = "Sin", kAtan[] = "Atan", kTanh[] = "Tanh",
               kSigmoid[] = "Sigmoid", kErf[] = "Erf", kNot[] = "Not", kFloor[] = "Floor",
               kCeil[] = "Ceil", kRound[] = "Round", kAdd[] = "Add", kSub[] = "Sub", kMul[] = "Mul",
               kPow[] = "Pow", kMax[] = "Max", kMin[] = "Min", kEqual[] = "Equal", kLess[] = "Less",
               kLessOrEqual[] = "LessOrEqual", kGreater[] = "Greater",
               kGreaterOrEqual[] = "GreaterOrEqual", kAnd[] = "And", kOr[] = "Or", kXor[] = "Xor";

const Writer kWriters[] = {
    {"neg", write_node<kNeg>},
    {"abs", write_node<kAbs>},
    {"sign", write_node<kSign>},
    {"floor", write_rounding<kFloor>},
    {"ceil", write_rounding<kCeil>},
    {"round", write_rounding<kRound>},
    {"exp", write_node<kExp>},
    {"expm1", write_expm1},
    {"log", write_node<kLog>},
    {"log1p", write_log1p},
    {"sqrt", write_node<kSqrt>},
    {"square", write_square},
    {"sin", write_node<kSin>},
    {"cos", write_cos},
    {"arctan", write_node<kAtan>},
    {"tanh", write_node<kTanh>},
    {"sigmoid", write_node<kSigmoid>},
    {"softplus", write_softplus},
    {"erf", write_node<kErf>},
    {"gelu", write_gelu},
    {"relu", write_relu},
    {"logical_not", write_node<kNot>},
    {"add", write_node<kAdd>},
    {"sub", write_node<kSub>},
    {"mul", write_node<kMul>},
    {"div", write_div},
    {"remainder", write_remainder},
    {"floor_divide", write_floor_divide},
    {"mod", write_mod},
    {"pow", write_node<kPow>},
    {"maximum", write_node<kMax>},
    {"minimum", write_node<kMin>},
    {"clip_low", write_node<kMax>},
    {"clip_high", write_node<kMin>},
    {"tanh_grad", write_tanh_grad},
    {"sigmoid_grad", write_sigmoid_grad},
    {"gelu_grad", write_gelu_grad},
    {"equal", write_node<kEqual>},
    {"not_equal", write_not_equal},
    {"less", write_comparison<kLess>},
    {"less_equal", write_comparison<kLessOrEqual>},
    {"greater", write_comparison<kGreater>},
    {"greater_equal", write_comparison<kGreaterOrEqual>},
    {"logical_and", write_node<kAnd>},
    {"logical_or", write_node<kOr>},
    {"logical_xor", write_node<kXor>},
    {"where", write_where},
    {"cast", write_cast},
};

}  // namespace

std::span<const Writer> elementwise_writers() { return kWriters; }

}  // namespace reel::exported
