// Each transformation of functions once.
#include "expect.h"

using namespace reel;

namespace {

struct Line {
  Tensor slope, offset;
};

Tensor cube(const Tensor& x) { return sum(x * x * x); }

void first_derivatives() {
  const Tensor x = tensor({1., 2.});
  const auto loss = [&](const Line& line, const Tensor& at) {
    return sum(line.slope * at + line.offset);
  };
  const Line line{scalar(2.), scalar(1.)};
  const auto [value, gradient] = value_and_grad(loss)(line, x);
  expect_values(value, {8});
  expect_values(gradient.slope, {3});
  expect_values(jit(grad(loss))(line, x).offset, {2});
  expect_values(vjp(cube, x).second(scalar(1.)), {3, 12});
  expect_values(jvp(cube, x, ones_like(x)).second, {15});
  expect_values(linearize(cube, x).second(ones_like(x)), {15});
  const auto squares = [](const Tensor& t) { return t * t; };
  expect_values(jacobian(squares)(x), {2, 0, 0, 4});
  expect_values(jacfwd(squares)(x), {2, 0, 0, 4});
}

void second_derivatives() {
  const Tensor x = tensor({1., 2.});
  expect_values(hvp(cube, x, ones_like(x)), {6, 12});
  expect_values(hessian(cube)(x), {6, 0, 0, 12});
}

void rules_of_users() {
  const auto doubled = custom_vjp(
      [](const Tensor& x) {
        return std::pair{x * x, x};
      },
      [](const Tensor& x, const Tensor& c) { return x * c * 4; });
  expect_values(grad([&](const Tensor& x) { return doubled(x); })(scalar(3.)), {12});
  using Arguments = std::tuple<Tensor>;
  const auto pushed =
      custom_jvp([](const Tensor& x) { return abs(x); },
                 [](const Arguments& x, const Arguments& t) {
                   return where(std::get<0>(x) < 0, -std::get<0>(t), std::get<0>(t));
                 });
  expect_values(grad([&](const Tensor& x) { return sum(pushed(x)); })(tensor({-1., 2.})), {-1, 1});
  const auto again = checkpoint([](const Tensor& x) { return sum(tanh(x) * x); });
  expect_values(grad(again)(tensor({0.})), {0});
}

void rows_and_tapes() {
  const Dim row("row", 2), in("in", 2);
  const Tensor x = tensor({1., 2., 3., 4.}, {row, in});
  expect_values(vmap([](const Tensor& r) { return sum(r); }, row)(x), {3, 7});
  Tape tape;
  const Tensor w = scalar(3.);
  tape.watch(w);
  const Tensor y = w * w;
  expect_values(tape.gradient(y, w), {6});
  expect(!saved_values(cube)(x).has_unknown());
}

}  // namespace

int main() {
  first_derivatives();
  second_derivatives();
  rules_of_users();
  rows_and_tapes();
}
