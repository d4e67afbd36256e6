// Draws refuse logits that are not a distribution and name the entry, in every mode.
#include <cmath>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using DrawChecksTest = InEveryMode;
REEL_IN_EVERY_MODE(DrawChecksTest);

Tensor draw(const Tensor& logits) { return categorical(logits, -1); }

void expect_says(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_P(DrawChecksTest, ALogitThatIsNaN) {
  const auto f = run(draw);
  expect_says(message_of<ArgumentError>([&] {
                f(tensor({{0., 1.}, {NAN, 0.}}));
              }),
              "categorical: the logit at [1,0] of f32[2,2] is NaN");
  expect_says(message_of<ArgumentError>([&] {
                f(tensor({{0., 1.}, {0., NAN}}, {}, f64));
              }),
              "categorical: the logit at [1,1] of f64[2,2] is NaN");
}

TEST_P(DrawChecksTest, AnEntryWithNothingToDraw) {
  const auto f = run(draw);
  expect_says(message_of<ArgumentError>([&] { f(full({3}, -INFINITY)); }),
              "are -inf, so that there is nothing to draw");
  expect_says(message_of<ArgumentError>([&] {
                f(tensor({{0., 1.}, {-INFINITY, -INFINITY}}));
              }),
              "are -inf at [1] of f32[2], so that there is nothing to draw");
  const Tensor one_each = tensor({{-INFINITY, 1.}, {0., -INFINITY}});
  expect_values(f(one_each), {1, 0});
}

TEST_P(DrawChecksTest, PaddingDoesNotCount) {
  const Dim batch("batch", 3), time("time", tensor({2, 1, 0}, {batch}));
  const auto f = run([time](const Tensor& x) { return categorical(x, x.dim("time")); });
  const Tensor x = tensor({{0., -INFINITY}, {-5., NAN}, {NAN, -INFINITY}}, {batch, time});
  expect_values(f(x), {0, 0, 0});
  const Tensor bad = tensor({{0., NAN}, {-5., 0.}, {0., 0.}}, {batch, time});
  EXPECT_THROW(f(bad), ArgumentError);
}

TEST_P(DrawChecksTest, InALoop) {
  const auto f = run([](const Tensor& x) {
    const auto body = [](const Tensor& x, const Tensor& s) {
      const Tensor drawn = categorical(x + s, 0);
      return std::pair{drawn, s * 2.};
    };
    return scan(Scan{.initial = scalar(0.f), .xs = x, .body = body}).ys;
  });
  EXPECT_EQ(f(ones({3, 2})).numel(), 3);
  EXPECT_THROW(f(tensor({{0., 1.}, {NAN, 1.}, {0., 1.}})), ArgumentError);
}

}  // namespace
}  // namespace reel
