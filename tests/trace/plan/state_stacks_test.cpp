// Stacks of the same states in one memory: bytes, and bits compared with separate memory.
#include <thread>

#include "reel/tests/modes.h"
#include "reel/tests/peaks.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

struct Recurrence {
  Tensor a, b, x;  ///< {channel}, {channel}, {time, channel}
};

Recurrence recurrence(std::int64_t steps, std::int64_t channels) {
  manual_seed(3);
  const Dim channel("channel", channels), time("time", steps);
  return {random_uniform({channel}, 0.5, 0.99), random_normal({channel}),
          random_normal({time, channel})};
}

/// Returns the states of h_t = a h_{t-1} + b x_t, written as a scan.
Tensor states_of(const Recurrence& at, bool is_reverse = false) {
  const auto step = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = at.a * h + at.b * x;
    return std::pair{next, next};
  };
  return scan(Scan{.spatial_dim = at.x.dim("time"),
                   .initial = 0.5f * ones_like(at.a),
                   .xs = at.x,
                   .body = step,
                   .reverse = is_reverse})
      .ys;
}

/// Returns the bytes of plans and values at the peak of a call, on a thread without other plans'
/// memory.
template <class F>
std::int64_t peak_of(const F& f) {
  std::int64_t result = 0;
  std::thread([&] { result = peaks_of(f).all.peak; }).join();
  return result;
}

Tensors leaves_of(const auto& tree) { return tensors_of(flatten(tree)); }

/// Expects the bits of a plan in which the stacks have separate memory, on one thread and on
/// three, in chunks and without.
template <class F, class... Args>
void expect_bits_of_separate_memory(const F& f, const Args&... args) {
  for (const int chunk : {0, 2, 5})
    for (const int count : {1, 3}) {
      const Threads threads(count);
      Passes passes;
      passes.chunk_loops = chunk > 0;
      passes.chunk_steps = chunk;
      const auto shared = jit(f, {.passes = passes});
      passes.reuse_memory = false;
      const auto separate = jit(f, {.passes = passes});
      const Tensors got = leaves_of(shared(args...)), expected = leaves_of(separate(args...));
      EXPECT_NE(shared.explain().find("\n  shared: "), std::string::npos) << shared.explain();
      EXPECT_EQ(separate.explain().find("\n  shared: "), std::string::npos);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i], expected[i]);
    }
}

TEST(StateStacksTest, AGradientHasTheStatesOnce) {
  const Recurrence at = recurrence(1000, 64);
  const std::int64_t stack = at.x.type().bytes();
  for (const bool is_reverse : {false, true}) {
    const auto loss = [=](const Recurrence& at) { return mean(square(states_of(at, is_reverse))); };
    const auto peak = [&](const Passes& passes) {
      const auto f = jit(value_and_grad(loss), {.passes = passes});
      return peak_of([&] { f(at); });
    };
    // The states, their squares, the cotangents of the states, the gradient of x; values of chunks.
    EXPECT_LE(peak({}), 4 * stack + stack / 2);
    EXPECT_GE(peak({.reuse_memory = false}), 5 * stack);
  }
}

TEST(StateStacksTest, StatesThatAreAResultAreTheResidualsToo) {
  const Recurrence at = recurrence(1000, 64);
  const std::int64_t stack = at.x.type().bytes();
  const auto loss = [](const Recurrence& at) {
    const Tensor states = states_of(at);
    return std::pair{sum(states), states};
  };
  const auto peak = [&](const Passes& passes) {
    const auto f = jit(value_and_grad(loss), {.passes = passes});
    return peak_of([&] { f(at); });
  };
  // The states, their cotangents, and the gradient of x.
  EXPECT_LE(peak({}), 3 * stack + stack / 2);
  EXPECT_GE(peak({.reuse_memory = false}), 4 * stack);
}

TEST(StateStacksTest, BitsOfForwardAndReverseLoops) {
  const Recurrence at = recurrence(23, 5);
  for (const bool is_reverse : {false, true}) {
    const auto loss = [=](const Recurrence& at) {
      const Tensor states = states_of(at, is_reverse);
      return std::pair{mean(square(states)), states};
    };
    expect_bits_of_separate_memory(value_and_grad(loss), at);
  }
}

TEST(StateStacksTest, BitsOfSecondGradients) {
  const Recurrence at = recurrence(23, 5);
  const auto loss = [](const Recurrence& at) { return mean(square(states_of(at))); };
  const auto second = [=](const Recurrence& at) {
    return grad([=](const Recurrence& at) { return sum(square(grad(loss)(at).x)); })(at);
  };
  expect_bits_of_separate_memory(second, at);
}

TEST(StateStacksTest, BitsOfAnRnnInRowBlocks) {
  const Tensor x = random_normal({11, 24, 64}), w = random_normal({64, 64});
  const auto loss = [](const std::pair<Tensor, Tensor>& at) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(h, 0.1f * at.second) + x);
      return std::pair{next, next};
    };
    return mean(
        square(scan(Scan{.initial = zeros_like(at.first[0]), .xs = at.first, .body = step}).ys));
  };
  expect_bits_of_separate_memory(value_and_grad(loss), std::pair{x, w});
}

TEST(StateStacksTest, LoopsThatAPlanRepeatsHaveNewStates) {
  const auto f = jit(value_and_grad([](const Recurrence& at) {
    const Tensor states = states_of(at);
    return std::pair{mean(square(states)), states};
  }));
  const auto first = f(recurrence(7, 3));
  const std::vector<float> before = first.first.second.to_vector<float>();
  Recurrence other = recurrence(7, 3);
  other.x = other.x + 1.f;
  f(other);
  EXPECT_EQ(first.first.second.to_vector<float>(), before);
}

class StateStacksInEveryModeTest : public InEveryMode {};

TEST_P(StateStacksInEveryModeTest, StatesAndGradientsAreThoseOfEagerMode) {
  const Recurrence at = recurrence(9, 4);
  for (const bool is_reverse : {false, true}) {
    const auto loss = [=](const Recurrence& at) {
      const Tensor states = states_of(at, is_reverse);
      return std::pair{sum(square(states)), states};
    };
    const Tensors expected = leaves_of(value_and_grad(loss)(at)),
                  got = leaves_of(run(value_and_grad(loss))(at));
    ASSERT_EQ(got.size(), 5u) << "the loss, the states, and gradients of a, b and x";
    for (std::size_t i = 0; i < got.size(); ++i) expect_all_close(got[i], expected[i]);
    expect_same_bits(got[1], expected[1]);
    expect_same_bits(got[4], expected[4]);
  }
}
REEL_IN_EVERY_MODE(StateStacksInEveryModeTest);

}  // namespace
}  // namespace reel
