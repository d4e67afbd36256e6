// Element-wise ops on one operand, and their public functions.
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/elementwise/elementwise_rules.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {
namespace {

constexpr const char* kSteps = "constant between its steps: the gradient is 0";

/// Rounds to whole numbers; integers stay unchanged.
constexpr Op rounding(std::string_view name, OpKernel kernel) {
  return Op{
      .name = name,
      .type = unary_type<Takes::numbers>,
      .kernel = kernel,
      .no_vjp = kSteps,
      .samples = [] { return unary_samples(-4, 4); },
      .pointwise = true,
  };
}

}  // namespace

constinit const Op neg_op{
    .name = "neg",
    .type = unary_type<Takes::numbers>,
    .kernel = unary_kernel<Unary::neg>,
    .vjp = [](Vjp& at) { at.add(0, neg(at.last_cotangent())); },
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op abs_op{
    .name = "abs",
    .type = unary_type<Takes::numbers>,
    .kernel = unary_kernel<Unary::abs>,
    .vjp =
        [](Vjp& at) {  // 0 at 0
          const Tensor &x = at.input(0), g = at.cotangent();
          at.add(0, where(x > 0, g, where(x < 0, neg(g), 0)));
        },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op sign_op{
    .name = "sign",
    .type = unary_type<Takes::numbers>,
    .kernel = unary_kernel<Unary::sign>,
    .no_vjp = kSteps,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op floor_op = rounding("floor", unary_kernel<Unary::floor>);
constinit const Op ceil_op = rounding("ceil", unary_kernel<Unary::ceil>);
constinit const Op round_op = rounding("round", unary_kernel<Unary::round>);
constinit const Op exp_op{
    .name = "exp",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::exp>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() * at.output()); },
    .reads = kReadsOutput,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op expm1_op{
    .name = "expm1",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::expm1>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() * (at.output() + 1)); },
    .reads = kReadsOutput,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op log_op{
    .name = "log",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::log>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() / at.input(0)); },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(0.5, 3); },
    .pointwise = true,
};
constinit const Op log1p_op{
    .name = "log1p",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::log1p>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() / (at.input(0) + 1)); },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-0.5, 2); },
    .pointwise = true,
};
constinit const Op sqrt_op{
    .name = "sqrt",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::sqrt>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() * 0.5 / at.output()); },
    .reads = kReadsOutput,
    .samples = [] { return unary_samples(0.5, 3); },
    .pointwise = true,
};
constinit const Op square_op{
    .name = "square",
    .type = unary_type<Takes::numbers>,
    .kernel = unary_kernel<Unary::square>,
    .vjp = [](Vjp& at) { at.add(0, (at.input(0) + at.input(0)) * at.cotangent()); },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op sin_op{
    .name = "sin",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::sin>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() * cos(at.input(0))); },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-4, 4); },
    .pointwise = true,
};
constinit const Op cos_op{
    .name = "cos",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::cos>,
    .vjp = [](Vjp& at) { at.add(0, neg(at.cotangent() * sin(at.input(0)))); },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-4, 4); },
    .pointwise = true,
};
constinit const Op arctan_op{
    .name = "arctan",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::arctan>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() / (square(at.input(0)) + 1)); },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-3, 3); },
    .pointwise = true,
};
constinit const Op tanh_op{
    .name = "tanh",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::tanh>,
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(tanh_grad_op, {at.output(), at.last_cotangent()}));
        },
    .reads = kReadsOutput,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op sigmoid_op{
    .name = "sigmoid",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::sigmoid>,
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(sigmoid_grad_op, {at.output(), at.last_cotangent()}));
        },
    .reads = kReadsOutput,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op softplus_op{
    .name = "softplus",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::softplus>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() * sigmoid(at.input(0))); },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-3, 3); },
    .pointwise = true,
};
constinit const Op erf_op{
    .name = "erf",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::erf>,
    .vjp =
        [](Vjp& at) {  // 2/√π exp(-x²)
          constexpr double kSlope = 1.12837916709551257390;
          at.add(0, at.cotangent() * (exp(neg(square(at.input(0)))) * kSlope));
        },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op gelu_op{
    .name = "gelu",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::gelu>,
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(gelu_grad_op, {at.input(0), at.cotangent()}));
        },
    .reads = kReadsFirst,
    .samples = [] { return unary_samples(-3, 3); },
    .pointwise = true,
};
constinit const Op relu_op{
    .name = "relu",
    .type = unary_type<Takes::numbers>,
    .kernel = unary_kernel<Unary::relu>,
    // 0 at 0; passes at NaN.
    .vjp = [](Vjp& at) { at.add(0, where(at.output() <= 0, 0, at.cotangent())); },
    .reads = kReadsOutput,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op logical_not_op{
    .name = "logical_not",
    .type = unary_type<Takes::booleans>,
    .kernel = unary_kernel<Unary::logical_not>,
    .no_vjp = "booleans have no gradient",
    .samples = [] { return unary_samples(0, 1, boolean); },
    .pointwise = true,
};

namespace {
const Op* const kUnaryOps[] = {
    &neg_op,     &abs_op,      &sign_op, &floor_op, &ceil_op, &round_op,       &square_op, &sqrt_op,
    &exp_op,     &expm1_op,    &log_op,  &log1p_op, &sin_op,  &cos_op,         &arctan_op, &tanh_op,
    &sigmoid_op, &softplus_op, &erf_op,  &gelu_op,  &relu_op, &logical_not_op,
};

const Tensor& float_tensor(std::string_view op, const Arg& x) {
  const Tensor& result = tensor_of(op, x);
  if (!is_float(result.dtype())) refuse_dtype(op, Takes::floats, "x", result.type());
  return result;
}

Tensor apply(const Op& op, const Arg& x) {
  tensor_of(op.name, x);
  return bind(op, {x.input()});
}
}  // namespace
std::span<const Op* const> unary_ops() { return kUnaryOps; }

Tensor neg(const Arg& x) { return apply(neg_op, x); }
Tensor abs(const Arg& x) { return apply(abs_op, x); }
Tensor sign(const Arg& x) { return apply(sign_op, x); }
Tensor floor(const Arg& x) { return apply(floor_op, x); }
Tensor ceil(const Arg& x) { return apply(ceil_op, x); }
Tensor round(const Arg& x) { return apply(round_op, x); }
Tensor square(const Arg& x) { return apply(square_op, x); }
Tensor sqrt(const Arg& x) { return apply(sqrt_op, x); }
Tensor rsqrt(const Arg& x) { return 1 / sqrt(float_tensor("rsqrt", x)); }
Tensor reciprocal(const Arg& x) { return 1 / float_tensor("reciprocal", x); }
Tensor exp(const Arg& x) { return apply(exp_op, x); }
Tensor expm1(const Arg& x) { return apply(expm1_op, x); }
Tensor log(const Arg& x) { return apply(log_op, x); }
Tensor log1p(const Arg& x) { return apply(log1p_op, x); }
Tensor sin(const Arg& x) { return apply(sin_op, x); }
Tensor cos(const Arg& x) { return apply(cos_op, x); }
Tensor arctan(const Arg& x) { return apply(arctan_op, x); }
Tensor tanh(const Arg& x) { return apply(tanh_op, x); }
Tensor sigmoid(const Arg& x) { return apply(sigmoid_op, x); }
Tensor softplus(const Arg& x) { return apply(softplus_op, x); }
Tensor erf(const Arg& x) { return apply(erf_op, x); }
Tensor gelu(const Arg& x, GeluForm form) {
  if (form == GeluForm::exact) return apply(gelu_op, x);
  // (1 + tanh z) / 2 is sigmoid(2 z), here for z = √(2/π) (x + 0.044715 x³).
  constexpr double kScale = 1.59576912160573071176;
  // Beyond 10 it is x or 0 to the last bit, and x³ must not overflow in its gradient.
  constexpr double kFar = 10;
  const Tensor& t = float_tensor("gelu", x);
  const Tensor near = clip(t, -kFar, kFar);
  const Tensor curve = near * sigmoid(near * (square(near) * (kScale * 0.044715) + kScale));
  return where(abs(t) > kFar, relu(t), curve);
}
Tensor relu(const Arg& x) { return apply(relu_op, x); }
Tensor logical_not(const Arg& x) { return apply(logical_not_op, x); }

}  // namespace reel
