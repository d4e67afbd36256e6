// Linear recurrences in fused ops: the graphs after fusion, and the bits of single ops on any
// number of threads.
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "reel/reel.h"
#include "reel/tests/gradients.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/passes/fused_ops.h"

namespace reel {
namespace {

class FusedRecurrencesTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { manual_seed(7); }

  const Threads threads_{GetParam()};
};

/// A recurrence: element-wise ops compute its decay and addend, and read its result.
Tensor gated(const Tensor& x, const Tensor& y, int axis, bool reverse = false) {
  const Tensor a = sigmoid(x);
  const Tensor b = (1. - a) * tanh(y);
  return square(linear_scan(a, b, axis, {.reverse = reverse})) + y;
}

const auto gradient_of_gated = [](int axis, bool reverse) {
  return grad([=](std::pair<Tensor, Tensor> at) {
    return sum(sin(gated(at.first, at.second, axis, reverse)));
  });
};

TEST_P(FusedRecurrencesTest, WalkWithTheirOperandsAndReaders) {
  const auto f = [](Tensor x, Tensor y) {
    const Tensor a = sigmoid(x);
    const Tensor b = tanh(y);
    const Tensor h = linear_scan(a, b, 0);
    return square(h);
  };
  EXPECT_EQ(fused_ops(f, zeros({5, 8}), zeros({5, 8})), "fused[sigmoid tanh linear_scan square]");
  // Few channels are walked one by one.
  EXPECT_EQ(fused_ops(f, zeros({5, 7}), zeros({5, 7})), "sigmoid tanh linear_scan square");
}

TEST_P(FusedRecurrencesTest, HaveTheBitsOfSingleOps) {
  const std::pair<Dims, int> shapes[] = {{{7, 8}, 0},        {{300, 40}, 0},     {{1, 16}, 0},
                                         {{0, 16}, 0},       {{3, 50, 33}, 1},   {{5, 9, 700}, 1},
                                         {{90, 1500}, 0},    {{2, 40, 3, 5}, 1}, {{40, 3, 8}, 0},
                                         {{2, 3, 40, 9}, 2}, {{6, 1, 9}, 1}};
  for (const auto& [dims, axis] : shapes)
    for (const bool reverse : {false, true})
      for (const DType dtype : {f32, f64}) {
        SCOPED_TRACE(::testing::Message() << TensorType(dtype, dims) << ' ' << axis << reverse);
        const Tensor x = random_normal(dims, dtype), y = random_normal(dims, dtype);
        expect_same([&](Tensor x, Tensor y) { return gated(x, y, axis, reverse); }, x, y);
        expect_same(gradient_of_gated(axis, reverse), std::pair{x, y});
      }
}

TEST_P(FusedRecurrencesTest, TakeInitialStatesInputsAndOperandsWithoutTime) {
  const Dims full{4, 30, 24}, state{4, 24};
  const auto f = [](const std::array<Tensor, 4>& at, bool reverse) {
    const auto& [a, b, x, h0] = at;
    return sum(sin(linear_scan(sigmoid(a), b * 2., h0, 1, {.input = tanh(x), .reverse = reverse})));
  };
  const std::array<Tensor, 4> all{random_normal(full), random_normal(full), random_normal(full),
                                  random_normal(state)};
  std::array<Tensor, 4> without_time = all;
  without_time[0] = random_normal({4, 1, 24});
  std::array<Tensor, 4> repeated = all;
  repeated[1] = random_normal({30, 1});
  for (const auto& args : {all, without_time, repeated})
    for (const bool reverse : {false, true}) {
      const auto value = [&](const std::array<Tensor, 4>& at) { return f(at, reverse); };
      expect_same(value, args);
      expect_same(grad(value), args);
      // No cotangent of the initial state, so that the gradient walks in a fused op.
      expect_same(grad([&](const std::array<Tensor, 3>& at, const Tensor& h0) {
                    return value({at[0], at[1], at[2], h0});
                  }),
                  std::array{args[0], args[1], args[2]}, args[3]);
    }
}

/// The selective scan of a Mamba block (Gu and Dao, 2023), without its projections.
struct SelectiveScan {
  Dim batch{"batch", 3}, time{"time", 20}, channel{"channel", 24}, state{"state", 16};
  Dims full() const { return {batch, time, channel, state}; }
  std::array<Tensor, 4> arguments(DType dtype = f32) const {
    return {abs(random_normal({batch, time, channel}, dtype)),
            abs(random_normal({channel, state}, dtype)), random_normal({batch, time, state}, dtype),
            random_normal({batch, time, state}, dtype)};
  }
  Tensor operator()(const std::array<Tensor, 4>& at) const {
    const auto& [step, decay, in, out] = at;
    const Tensor a = exp(-(expand(step, full()) * decay));
    const Tensor h = linear_scan(a, expand(step * 0.5, full()) * in, time);
    return sum(square(sum(h * out, state)));
  }
};

TEST_P(FusedRecurrencesTest, SumTheirStatesOverRows) {
  SelectiveScan f;
  expect_same(f, f.arguments());
  expect_same(grad(f), f.arguments());
  expect_same(grad(f), f.arguments(f64));
  f.channel = Dim("channel", 300);  // more than a tile
  f.time = Dim("time", 50);
  expect_same(grad(f), f.arguments());
}

TEST_P(FusedRecurrencesTest, GradientsAgreeWithDifferences) {
  SelectiveScan f;
  f.batch = Dim("batch", 2), f.time = Dim("time", 3), f.channel = Dim("channel", 2);
  f.state = Dim("state", 8);
  const auto args = f.arguments(f64);
  expect_gradient_of(f, args, jit(grad(f))(args), 1e-6);
  for (const bool reverse : {false, true}) {
    const std::pair at{random_normal({2, 4, 8}, f64), random_normal({2, 4, 8}, f64)};
    const auto loss = [&](const std::pair<Tensor, Tensor>& at) {
      return sum(sin(gated(at.first, at.second, 1, reverse)));
    };
    expect_gradient_of(loss, at, jit(gradient_of_gated(1, reverse))(at), 1e-6);
  }
}

TEST_P(FusedRecurrencesTest, SecondDerivativesHaveTheBitsOfUnfusedOps) {
  const auto loss = [](const std::pair<Tensor, Tensor>& at) {
    const auto g = grad([](const std::pair<Tensor, Tensor>& at) {
      return sum(sin(gated(at.first, at.second, 1)));
    })(at);
    return sum(square(g.first)) + sum(square(g.second));
  };
  expect_same(grad(loss), std::pair{random_normal({3, 9, 20}), random_normal({3, 9, 20})});
}

TEST_P(FusedRecurrencesTest, RaggedTimeAndBodiesOfLoops) {
  const Dim batch("batch", 5), channel("channel", 12);
  const Dim time("time", tensor({7, 1, 4, 9, 3}, {batch}));
  const auto f = [&](Tensor x, Tensor y) {
    return sum(sin(linear_scan(sigmoid(x), tanh(y), time) * y));
  };
  const Tensor x = random_normal({batch, time, channel}), y = random_normal({batch, time, channel});
  expect_same(f, x, y);
  expect_same(grad(f), x, y);
  const auto layers = [&](Tensor x, Tensor y) {
    return sum(fori_loop(
        0, 3,
        [&](const Tensor&, const Tensor& h) { return linear_scan(sigmoid(h), tanh(y) * h, time); },
        x));
  };
  expect_same(layers, x, y);
  expect_same(grad(layers), x, y);
}

// Recurrences in both directions read the same values, and one reads the other's result.
TEST_P(FusedRecurrencesTest, RecurrencesMayRunInBothDirections) {
  const auto f = [](Tensor x, Tensor y) {
    const Tensor there = linear_scan(sigmoid(x), tanh(y), 1);
    const Tensor back = linear_scan(sigmoid(x), there * y, 1, {.reverse = true});
    return sum(sin(there + back));
  };
  const Tensor x = random_normal({3, 30, 20}), y = random_normal({3, 30, 20});
  expect_same(f, x, y);
  expect_same(grad(f), x, y);
}

// Gates that are parts of one value, as of one product, and results that are joined.
TEST_P(FusedRecurrencesTest, SplitsAndConcatsOfChannels) {
  const auto f = [](Tensor gates) {
    const auto [a, b] = split<2>(gates, 2);
    const Tensor h = linear_scan(sigmoid(a), tanh(b), 1);
    return concat({h * a, h + b}, 2);
  };
  const Tensor gates = random_normal({3, 30, 40});
  expect_same(f, gates);
  expect_same(grad([&](Tensor x) { return sum(sin(f(x))); }), gates);
  const auto along_time = [](Tensor x) {
    const auto [a, b] = split<2>(x, 1);
    return linear_scan(sigmoid(a), tanh(b), 1) * a;
  };
  expect_same(along_time, gates);
}

INSTANTIATE_TEST_SUITE_P(Threads, FusedRecurrencesTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace reel
