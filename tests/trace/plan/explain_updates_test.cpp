// explain()'s lines on arguments that results replace.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/trace/plan/explained.h"

namespace reel {
namespace {

/// Returns the lines on donated arguments after a call.
template <class F, class... Args>
std::string in_place_of(const F& f, Args... args) {
  const auto jitted = jit(f);
  jitted(std::move(args)...);
  std::istringstream text(jitted.explain());
  std::string result;
  for (std::string line; std::getline(text, line);)
    if (has(line, "in place: ")) result += line + '\n';
  return result;
}

TEST_F(ExplainTest, NamesArgumentsUpdatedInPlace) {
  const auto made = [] { return random_normal({1000}); };
  const auto doubled = [](const Tensor& x) { return x * 2.f; };
  EXPECT_EQ(in_place_of(doubled, made()), "in place: argument 0\n");
  const Tensor held = made();
  EXPECT_EQ(in_place_of(doubled, held),
            "not in place: argument 0, held by another reference; move it in\n");
  // The argument's type differs from the types of all results.
  EXPECT_EQ(in_place_of([](const Tensor& x) { return sum(x); }, made()), "");
  EXPECT_EQ(in_place_of(
                [](const Tensor& x) {
                  return std::pair{x, x * 2.f};
                },
                made()),
            "not in place: argument 0, returned as a result or viewed by one\n");
  EXPECT_EQ(in_place_of([](const Tensor& x, const Tensor&) { return x * 2.f; }, made(), made()),
            "in place: argument 0\nnot in place: argument 1, never read\n");
  const Tensor index = tensor({5}, {1}, i32);
  EXPECT_EQ(in_place_of(
                [&](const Tensor& x) {
                  const Tensor y = tanh(x * 2.f);
                  return std::pair{y, gather(y, index, 0)};
                },
                made()),
            "not in place: argument 0, gather, after its last use, may fail\n");
  EXPECT_EQ(in_place_of([&](const Tensor& x) { return gather(x, index, 0) + x; }, made()),
            "in place: argument 0\n");  // the add is behind the op that could fail
  const Tensor w = random_normal({32, 32}), large = random_normal({600, 600});
  EXPECT_EQ(in_place_of([&](const Tensor& x) { return matmul(x, w); }, random_normal({32, 32})),
            "not in place: argument 0, its last use, dot, cannot write over it\n");
  EXPECT_EQ(
      in_place_of([&](const Tensor& x) { return matmul(x, large); }, random_normal({600, 600})),
      "not in place: argument 0, its last use, dot, may fail\n");
  // A product of few rows copies no operand, so that it cannot fail.
  EXPECT_EQ(in_place_of(
                [&](const Tensor& x) {
                  const Tensor y = tanh(x);
                  return std::pair{y, matmul(y, large)};
                },
                random_normal({600})),
            "in place: argument 0\n");
  EXPECT_EQ(in_place_of(
                [&](const Tensor& x) {
                  const Tensor y = set_at(x, 3, 1.f);
                  return std::pair{y, gather(y, index, 0)};
                },
                made()),
            "in place: argument 0\n");  // a failure of gather puts the element back
  const auto [scan, xs] = small_scan();
  EXPECT_EQ(in_place_of(
                [scan = scan](const Tensor& x) {
                  return scan(x, ones({2, 3}));
                },
                xs * 1.f),
            "not in place: argument 0, its last use, scan \"scan\", may fail\n");
}

TEST_F(ExplainTest, NamesTrainingArgumentsUpdatedInPlace) {
  Model model = this->model;
  Adam<Model> adam(model);
  const auto step = jit([](Model m, Adam<Model> a, const Tensor& x) {
    a.update(m, grad(loss)(m, x));
    return std::pair{m, a};
  });
  const auto update = [&] { std::tie(model, adam) = step(std::move(model), std::move(adam), x); };
  for (int call = 0; call < 2; ++call) update();
  EXPECT_TRUE(has(step.explain(),
                  "\nin place: argument 0.cell.input_weight, argument "
                  "0.cell.recurrent_weight, argument 0.cell.bias, argument "
                  "0.out.weight, argument 0.out.bias, argument 1."))
      << step.explain();
  const Model kept = model;
  update();
  EXPECT_EQ(
      line_with(step.explain(), "not in place: "),
      "not in place: argument 0.cell.input_weight, argument 0.cell.recurrent_weight, argument "
      "0.cell.bias, argument 0.out.weight, argument 0.out.bias, held by another reference; move it "
      "in");
}

}  // namespace
}  // namespace reel
