// Element-wise ops on one operand.
#include "reel/core/bind.h"
#include "reel/core/ops/elementwise.h"
#include "reel/core/ops/elementwise_rules.h"
#include "reel/core/ops/pointwise_kernels.h"
#include "reel/core/vjp.h"

namespace reel {

constinit const Op neg_op{
    .name = "neg",
    .type = unary_type<Takes::numbers>,
    .kernel = unary_kernel<Unary::neg>,
    .vjp = [](Vjp& at) { at.add(0, neg(at.cotangent())); },
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
constinit const Op exp_op{
    .name = "exp",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::exp>,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent() * at.output()); },
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
constinit const Op tanh_op{
    .name = "tanh",
    .type = unary_type<Takes::floats>,
    .kernel = unary_kernel<Unary::tanh>,
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(tanh_grad_op, {at.output(), at.cotangent()}));
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
          at.add(0, bind(sigmoid_grad_op, {at.output(), at.cotangent()}));
        },
    .reads = kReadsOutput,
    .samples = [] { return unary_samples(-2, 2); },
    .pointwise = true,
};
constinit const Op relu_op{
    .name = "relu",
    .type = unary_type<Takes::numbers>,
    .kernel = unary_kernel<Unary::relu>,
    .vjp = [](Vjp& at) { at.add(0, where(at.output() > 0, at.cotangent(), 0)); },  // 0 at 0
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
