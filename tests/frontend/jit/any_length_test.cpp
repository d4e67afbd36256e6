// JitOptions::any_length: one trace for all sizes of plain first axes.
#include "reel/tests/modes.h"

namespace reel {
namespace {

class AnyLengthTest : public InEveryMode {
 protected:
  template <class F>
  auto any_length(F f, std::vector<AnyLength> positions) const {
    JitOptions options = options_of(GetParam());
    options.any_length = std::move(positions);
    return jit(f, options);
  }
};

TEST_P(AnyLengthTest, OneTraceServesAllNumbersOfRows) {
  if (is_eager()) return;
  manual_seed(1);
  const Tensor w = random_normal({3, 2}, f64);
  const auto loss = [](const Tensor& w, const Tensor& x) -> Tensor {
    return mean(square(tanh(matmul(x, w)))) + sum(softmax(x, 0) * x);
  };
  const auto jitted = any_length(value_and_grad(loss), {1});
  for (const int rows : {5, 2, 9}) {
    const Tensor x = random_normal({rows, 3}, f64);
    const auto [value, gradient] = jitted(w, x);
    const auto [expected, slope] = value_and_grad(loss)(w, x);
    expect_all_close(value, expected, 1e-12);
    expect_all_close(gradient, slope, 1e-12);
  }
  EXPECT_EQ(jitted.trace_count(), 1);
}

TEST_P(AnyLengthTest, LoopsRunAsOftenAsThereAreRows) {
  if (is_eager()) return;
  const auto f = [](const std::pair<Tensor, Tensor>& x) {
    const auto [ys, last, dim] = scan(Scan{
        .initial = zeros({}, f64), .xs = x.first, .body = [&](const Tensor& x, const Tensor& s) {
          const Tensor next = sin(s + x);
          return std::pair{next, next};
        }});
    return std::pair{ys, last * sum(x.second)};
  };
  const auto jitted = any_length(f, {0});
  for (const int rows : {1, 4, 3}) {
    const std::pair<Tensor, Tensor> x{random_normal({rows}, f64), random_normal({rows, 2}, f64)};
    expect_all_close(jitted(x).first, f(x).first, 1e-12);
    expect_all_close(jitted(x).second, f(x).second, 1e-12);
  }
  EXPECT_EQ(jitted.trace_count(), 1);
}

TEST(AnyLengthErrorTest, NamesAPositionWithoutAnArgument) {
  const auto f = jit([](const Tensor& x) { return x; }, {.any_length = {1}});
  EXPECT_EQ(message_of<ArgumentError>([&] { f(zeros({2})); }),
            "jit: any_length names argument 1, but there are 1 arguments");
}

REEL_IN_EVERY_MODE(AnyLengthTest);

}  // namespace
}  // namespace reel
