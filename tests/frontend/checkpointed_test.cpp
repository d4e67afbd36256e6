// checkpoint(f): the same gradient, with nothing of f kept.
#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class CheckpointedTest : public InEveryMode {};

TEST_P(CheckpointedTest, AFunctionHasTheSameGradient) {
  manual_seed(5);
  const Tensor w = random_normal({3, 3}, f64), x = random_normal({2, 3}, f64);
  const auto f = [&](bool is_checkpointed) {
    return run(value_and_grad([&, is_checkpointed](const std::pair<Tensor, Tensor>& p) {
      const auto block = [&](const Tensor& h) {
        const Tensor noise = random_uniform({2, 3}, 0.5, 1.5, f64);
        return std::pair{tanh(matmul(h, p.first)) * noise, exp(h)};
      };
      std::pair<Tensor, Tensor> made{p.second, p.second};
      for (int i = 0; i < 3; ++i)
        made = is_checkpointed ? checkpoint(block)(made.first) : block(made.first);
      return sum(square(made.first)) + sum(made.second);
    }));
  };
  const auto once = [&](bool is_checkpointed) {
    manual_seed(7);
    return f(is_checkpointed)(std::pair{w, x});
  };
  // A block draws from a stream of its own: what it draws is the same with and without a tape.
  const auto a = once(true), b = once(true);
  expect_same_bits(a.first, b.first);
  expect_same_bits(a.second.first, b.second.first);
}

TEST_P(CheckpointedTest, ToTheBitWithoutRandomNumbersAndToAnyOrder) {
  manual_seed(5);
  const Tensor w = random_normal({3, 3}, f64), x = random_normal({2, 3}, f64);
  const auto loss = [&](bool is_checkpointed) {
    return [&, is_checkpointed](const Tensor& w) {
      const auto block = [&](const Tensor& h) { return tanh(matmul(h, w)); };
      const Tensor h = is_checkpointed ? checkpoint(block)(checkpoint(block)(x)) : block(block(x));
      return sum(square(h));
    };
  };
  const auto a = run(value_and_grad(loss(true)))(w), b = run(value_and_grad(loss(false)))(w);
  expect_same_bits(a.first, b.first);
  expect_all_close(a.second, b.second, is_eager() ? 1e-15 : 1e-14);
  const auto second = [&](bool is_checkpointed) {
    return grad([&, is_checkpointed](const Tensor& w) {
      return sum(square(grad(loss(is_checkpointed))(w)));
    });
  };
  expect_all_close(run(second(true))(w), run(second(false))(w), 1e-11);
}

TEST_P(CheckpointedTest, InABodyAndInABranch) {
  manual_seed(6);
  const Tensor w = random_normal({3, 3}, f64) * 0.5, x = random_normal({5, 2, 3}, f64);
  const auto f = [&](bool is_checkpointed) {
    return run(value_and_grad([&, is_checkpointed](const Tensor& w) {
      const auto cell = [&](const Tensor& x, const Tensor& h) { return tanh(x + matmul(h, w)); };
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = is_checkpointed ? checkpoint(cell)(x, h) : cell(x, h);
        return std::pair{next, next};
      };
      const auto made = scan(Scan{.initial = zeros({2, 3}, f64), .xs = x, .body = body});
      const auto branch = [&] {
        const auto g = [](const Tensor& y) { return sum(square(y)); };
        return is_checkpointed ? checkpoint(g)(made.ys) : g(made.ys);
      };
      return cond(sum(made.state) > -100.0, branch, [&] { return sum(made.ys); });
    }));
  };
  const auto a = f(true)(w), b = f(false)(w);
  expect_all_close(a.first, b.first, 1e-13);
  expect_all_close(a.second, b.second, 1e-12);
}

REEL_IN_EVERY_MODE(CheckpointedTest);

}  // namespace
}  // namespace reel
