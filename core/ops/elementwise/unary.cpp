// Element-wise ops on one operand.
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

}  // namespace reel
