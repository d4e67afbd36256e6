// Operations that are allowed on several threads at the same time: ops on shared tensors, copies of
// handles, interning of types, draws, derivatives and traces. Only ThreadSanitizer (preset tsan)
// makes this a strong test: it finds data races.
#include <functional>
#include <thread>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

constexpr int kThreads = 4;

/// Runs fn on several threads at the same time, and returns the result of each.
std::vector<Tensor> on_threads(const std::function<Tensor()>& fn) {
  std::vector<Tensor> results(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { results[i] = fn(); });
  for (std::thread& thread : threads) thread.join();
  return results;
}

class ThreadsTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 3}, feature{"feature", 4};
  const Dim time{"time", tensor({3, 1, 2}, {batch})};
  const Tensor x = random_normal({batch, time, feature}), w = random_normal({feature});

  /// A loss with a scan, ragged dims, temporary dims, and types that come and go.
  Tensor loss(const Tensor& x, const Tensor& w) const {
    const Dim time = x.dim("time");
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(h * w + x);
      return std::pair{next, next};
    };
    const Tensor ys =
        scan(Scan{.spatial_dim = time, .initial = zeros({batch, feature}), .xs = x, .body = step})
            .ys;
    const Tensor padded = pad(ys, time, 0, 1, 0.0, time + 1);
    return sum(square(padded));
  }
};

TEST_F(ThreadsTest, DifferentiateWithSharedTensors) {
  const auto gradient = [&] {
    Tensor g;
    for (int i = 0; i < 5; ++i) g = grad([&](const Tensor& w) { return loss(x, w); })(w);
    return g;
  };
  const Tensor expected = gradient();
  for (const Tensor& result : on_threads(gradient)) expect_same_bits(result, expected);
}

TEST_F(ThreadsTest, TraceAndRunFunctionsOfTheirOwn) {
  const auto gradient = [&] {
    const auto f = jit(grad([&](const Tensor& w, const Tensor& x) { return loss(x, w); }));
    f(w, x);
    return f(w, x);
  };
  const Tensor expected = gradient();
  for (const Tensor& result : on_threads(gradient)) expect_same_bits(result, expected);
}

TEST_F(ThreadsTest, DrawFromStreamsOfTheirOwn) {
  const auto draw = [&] {
    manual_seed(5);
    return random_normal({batch, feature}) + dropout(ones({batch, feature}), 0.5);
  };
  const Tensor expected = draw();
  for (const Tensor& result : on_threads(draw)) expect_same_bits(result, expected);
}

TEST_F(ThreadsTest, ATensorMayDieOnAnotherThreadThanItWasMadeOn) {
  const std::int64_t before = memory().values.current;
  std::vector<Tensor> made = on_threads([&] { return x * 2.0; });
  std::thread([moved = std::move(made)]() mutable { moved.clear(); }).join();
  EXPECT_EQ(memory().values.current, before);
  expect_same_bits(x + x, x * 2.0);
}

}  // namespace
}  // namespace reel
