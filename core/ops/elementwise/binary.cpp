// Element-wise ops on two operands: arithmetic, comparisons, logic.
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/elementwise/elementwise_rules.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {
namespace {

/// Adds the cotangent of an operand, given at the result's dims.
void add_to(Vjp& at, std::size_t i, Tensor&& cotangent) {
  const TensorType& type = at.input_type(i);
  at.add(i,
         cotangent.type() == type ? std::move(cotangent) : unbroadcast(std::move(cotangent), type));
}
void add_first(Vjp& at, Tensor cotangent) { add_to(at, 0, std::move(cotangent)); }
void add_second(Vjp& at, Tensor cotangent) { add_to(at, 1, std::move(cotangent)); }

/// Samples of ops that take integers and floats; floats come first.
OpSamples division_samples() {
  OpSamples samples = binary_samples(-7, 7, 0.5, 3);
  for (OpSample& sample : binary_samples(-7, 7, -3, 3, i32)) samples.push_back(std::move(sample));
  return samples;
}

}  // namespace

// ---- Arithmetic ---------------------------------------------------------------------------------

constinit const Op add_op{
    .name = "add",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::add>,
    .of_one_type = binary_of_one_type<Binary::add>,
    .vjp =
        [](Vjp& at) {
          if (at.needs(0)) add_first(at, at.cotangent());
          if (at.needs(1)) add_second(at, at.last_cotangent());
        },
    .samples = [] { return binary_samples(-2, 2, -2, 2); },
    .pointwise = true,
};
constinit const Op sub_op{
    .name = "sub",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::sub>,
    .of_one_type = binary_of_one_type<Binary::sub>,
    .vjp =
        [](Vjp& at) {
          if (at.needs(0)) add_first(at, at.cotangent());
          if (at.needs(1)) at.add(1, neg(unbroadcast(at.last_cotangent(), at.input_type(1))));
        },
    .samples = [] { return binary_samples(-2, 2, -2, 2); },
    .pointwise = true,
};
constinit const Op mul_op{
    .name = "mul",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::mul>,
    .of_one_type = binary_of_one_type<Binary::mul>,
    .vjp =
        [](Vjp& at) {
          if (at.needs(1)) add_second(at, at.cotangent() * at.input(0));
          if (at.needs(0)) add_first(at, at.last_cotangent() * at.input(1));
        },
    .reads_by = reads_the_other,
    .samples = [] { return binary_samples(-2, 2, -2, 2); },
    .pointwise = true,
};
constinit const Op div_op{
    .name = "div",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::div>,
    .of_one_type = binary_of_one_type<Binary::div>,
    .vjp =
        [](Vjp& at) {  // y = a / b: ā = ȳ / b, b̄ = -ȳ y / b
          const Tensor quotient = at.cotangent() / at.input(1);
          if (at.needs(0)) add_first(at, quotient);
          if (at.needs(1)) at.add(1, neg(unbroadcast(quotient * at.output(), at.input_type(1))));
        },
    .reads_by =
        [](const Attrs*, std::uint32_t wanted) {
          return OpReads{.inputs = 0b10, .outputs = wanted >> 1 & 1};
        },
    .samples = [] { return binary_samples(-2, 2, 0.5, 2); },
    .pointwise = true,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b1) != 0; },
};
constinit const Op remainder_op{
    .name = "remainder",
    .type = binary_type<Takes::integers>,
    .kernel = binary_kernel<Binary::remainder>,
    .no_vjp = "integers have no gradient",
    .samples = [] { return binary_samples(-7, 7, -3, 3, i32); },
    .pointwise = true,
};
constinit const Op floor_divide_op{
    .name = "floor_divide",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::floor_divide>,
    .no_vjp = "constant between its steps: the gradient is 0",
    .samples = division_samples,
    .pointwise = true,
};
constinit const Op mod_op{
    .name = "mod",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::mod>,
    .vjp =
        [](Vjp& at) {  // y = a - b floor(a / b)
          const Tensor g = at.cotangent();
          if (at.needs(0)) add_first(at, g);
          if (at.needs(1)) add_second(at, neg(g * floor_divide(at.input(0), at.input(1))));
        },
    .reads = kReadsBoth,
    .samples = division_samples,
    .pointwise = true,
};
constinit const Op pow_op{
    .name = "pow",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::pow>,
    .vjp =
        [](Vjp& at) {  // y = a^b: ā = ȳ b a^(b-1), 0 for 0^0; b̄ = ȳ y log a, 0 where a is 0
          const Tensor &a = at.input(0), &b = at.input(1), g = at.cotangent();
          if (at.needs(0)) add_first(at, g * (b * pow(where(a == 0 && b == 0, 1, a), b - 1)));
          if (at.needs(1)) {
            const Tensor is_zero = a == 0;
            add_second(at, where(is_zero, 0, g * (at.output() * log(where(is_zero, 1, a)))));
          }
        },
    .reads_by =
        [](const Attrs*, std::uint32_t wanted) {
          return OpReads{.inputs = 0b11, .outputs = wanted >> 1 & 1};
        },
    .samples = [] { return binary_samples(0.5, 2, -2, 2); },
    .pointwise = true,
};
namespace {

/// For maximum and minimum: the gradient flows to the operand that is the result. NaN is the
/// result. Equal operands share the gradient, and so do two NaN.
void share_gradient(Vjp& at, const Tensor& first_is_beyond, const Tensor& second_is_beyond) {
  const Tensor g = at.cotangent();
  const Tensor first = first_is_beyond || isnan(at.input(0));
  const Tensor second = second_is_beyond || isnan(at.input(1));
  const Tensor shared = where(first == second, g * 0.5, 0);
  if (at.needs(0)) add_first(at, where(first && !second, g, shared));
  if (at.needs(1)) add_second(at, where(second && !first, g, shared));
}

constexpr std::string_view kXLow[] = {"x", "low"}, kXHigh[] = {"x", "high"};

/// For the halves of clip: the gradient flows to x if the result is x, otherwise to the bound.
void choose_gradient(Vjp& at, const Tensor& is_within) {
  const Tensor g = at.cotangent(), is_x = is_within || isnan(at.input(0));
  if (at.needs(0)) add_first(at, where(is_x, g, 0));
  if (at.needs(1)) add_second(at, where(is_x, 0, g));
}

}  // namespace

constinit const Op maximum_op{
    .name = "maximum",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::maximum>,
    .of_one_type = binary_of_one_type<Binary::maximum>,
    .vjp =
        [](Vjp& at) {
          const Tensor &a = at.input(0), &b = at.input(1);
          share_gradient(at, a > b, a < b);
        },
    .reads = kReadsBoth,
    .samples = [] { return binary_samples(-2, 2, -2, 2); },
    .pointwise = true,
    .known_integer = [](const Attrs*, std::span<const std::int64_t> in) -> KnownInteger {
      return std::max(in[0], in[1]);
    },
};
constinit const Op minimum_op{
    .name = "minimum",
    .type = binary_type<Takes::numbers>,
    .kernel = binary_kernel<Binary::minimum>,
    .of_one_type = binary_of_one_type<Binary::minimum>,
    .vjp =
        [](Vjp& at) {
          const Tensor &a = at.input(0), &b = at.input(1);
          share_gradient(at, a<b, a> b);
        },
    .reads = kReadsBoth,
    .samples = [] { return binary_samples(-2, 2, -2, 2); },
    .pointwise = true,
    .known_integer = [](const Attrs*, std::span<const std::int64_t> in) -> KnownInteger {
      return std::min(in[0], in[1]);
    },
};
// The halves of clip use the kernels of maximum and minimum. A result on the bound counts as x,
// also if x and the bound are NaN.
constinit const Op clip_low_op{
    .name = "clip_low",
    .type = [](TypeArgs& args) { binary_type<Takes::numbers>(args, "clip", kXLow); },
    .kernel = binary_kernel<Binary::maximum>,
    .of_one_type = binary_of_one_type<Binary::maximum>,
    .vjp = [](Vjp& at) { choose_gradient(at, at.input(0) >= at.input(1)); },
    .reads = kReadsBoth,
    .samples = [] { return binary_samples(-2, 2, -2, 2); },
    .pointwise = true,
};
constinit const Op clip_high_op{
    .name = "clip_high",
    .type = [](TypeArgs& args) { binary_type<Takes::numbers>(args, "clip", kXHigh); },
    .kernel = binary_kernel<Binary::minimum>,
    .of_one_type = binary_of_one_type<Binary::minimum>,
    .vjp = [](Vjp& at) { choose_gradient(at, at.input(0) <= at.input(1)); },
    .reads = kReadsBoth,
    .samples = [] { return binary_samples(-2, 2, -2, 2); },
    .pointwise = true,
};
constinit const Op tanh_grad_op{
    .name = "tanh_grad",
    .type = binary_type<Takes::floats>,
    .kernel = binary_kernel<Binary::tanh_grad>,
    .of_one_type = binary_of_one_type<Binary::tanh_grad>,
    .vjp =
        [](Vjp& at) {  // z = (1 - y²) g: ȳ = -2 y g z̄, ḡ = (1 - y²) z̄
          const Tensor &y = at.input(0), &g = at.input(1), z = at.cotangent();
          if (at.needs(0)) at.add(0, neg(unbroadcast((y + y) * g * z, at.input_type(0))));
          if (at.needs(1)) add_second(at, bind(tanh_grad_op, {y, z}));
        },
    .reads = kReadsBoth,
    .samples = [] { return binary_samples(-0.9, 0.9, -2, 2); },
    .pointwise = true,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b10) != 0; },
};
constinit const Op sigmoid_grad_op{
    .name = "sigmoid_grad",
    .type = binary_type<Takes::floats>,
    .kernel = binary_kernel<Binary::sigmoid_grad>,
    .of_one_type = binary_of_one_type<Binary::sigmoid_grad>,
    .vjp =
        [](Vjp& at) {  // z = y (1 - y) g: ȳ = (1 - 2 y) g z̄, ḡ = y (1 - y) z̄
          const Tensor &y = at.input(0), &g = at.input(1), z = at.cotangent();
          if (at.needs(0)) add_first(at, (1 - (y + y)) * g * z);
          if (at.needs(1)) add_second(at, bind(sigmoid_grad_op, {y, z}));
        },
    .reads = kReadsBoth,
    .samples = [] { return binary_samples(0.1, 0.9, -2, 2); },
    .pointwise = true,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b10) != 0; },
};

constinit const Op gelu_grad_op{
    .name = "gelu_grad",
    .type = binary_type<Takes::floats>,
    .kernel = binary_kernel<Binary::gelu_grad>,
    .vjp =
        [](Vjp& at) {  // z = (Φ(x) + x φ(x)) g: x̄ = φ(x) (2 - x²) g z̄
          const Tensor &x = at.input(0), &g = at.input(1), z = at.cotangent();
          if (at.needs(0)) {
            constexpr double kDensity = 0.39894228040143267794;  // φ(0) = 1/√(2π)
            const Tensor power = square(x);
            add_first(at, exp(power * -0.5) * ((2 - power) * kDensity) * g * z);
          }
          if (at.needs(1)) add_second(at, bind(gelu_grad_op, {x, z}));
        },
    .reads = kReadsBoth,
    .samples = [] { return binary_samples(-3, 3, -2, 2); },
    .pointwise = true,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b10) != 0; },
};

// ---- Comparisons and logic ----------------------------------------------------------------------

namespace {

constexpr Op comparison(std::string_view name, OpKernel kernel) {
  return Op{
      .name = name,
      .type = binary_type<Takes::all, true>,
      .kernel = kernel,
      .no_vjp = "booleans have no gradient",
      .samples = [] { return binary_samples(-2, 2, -2, 2); },
      .pointwise = true,
  };
}
constexpr Op logic(std::string_view name, OpKernel kernel) {
  return Op{
      .name = name,
      .type = binary_type<Takes::booleans>,
      .kernel = kernel,
      .no_vjp = "booleans have no gradient",
      .samples = [] { return binary_samples(0, 1, 0, 1, boolean); },
      .pointwise = true,
  };
}

}  // namespace

constinit const Op equal_op = comparison("equal", binary_kernel<Binary::equal>);
constinit const Op not_equal_op = comparison("not_equal", binary_kernel<Binary::not_equal>);
constinit const Op less_op = comparison("less", binary_kernel<Binary::less>);
constinit const Op less_equal_op = comparison("less_equal", binary_kernel<Binary::less_equal>);
constinit const Op greater_op = comparison("greater", binary_kernel<Binary::greater>);
constinit const Op greater_equal_op =
    comparison("greater_equal", binary_kernel<Binary::greater_equal>);
constinit const Op logical_and_op = logic("logical_and", binary_kernel<Binary::logical_and>);
constinit const Op logical_or_op = logic("logical_or", binary_kernel<Binary::logical_or>);
constinit const Op logical_xor_op = logic("logical_xor", binary_kernel<Binary::logical_xor>);

}  // namespace reel
