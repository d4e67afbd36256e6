// Memory that a thread holds for plans between calls: it goes with the jitted function.
#include <semaphore>
#include <thread>

#include "reel/core/runtime/memory.h"
#include "reel/eager/regions.h"
#include "reel/tests/modes.h"
#include "reel/tests/peaks.h"

namespace reel {
namespace {

std::int64_t buffers() { return memory().buffers.current; }

/// Runs a test on a thread of its own, which holds no memory at first.
template <class Test>
void on_new_thread(Test test) {
  std::thread(std::move(test)).join();
}

/// Returns the jitted gradient of a loop. Its plan's memory grows with the number of steps.
auto gradient_of_steps(std::int64_t steps, const Checkpoint& policy = {}) {
  return jit([=](const Tensor& w) {
    return grad([&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(matmul(h, w) + x)};
      };
      return sum(scan(Scan{.initial = zeros({4, 32}),
                           .xs = ones({steps, 4, 32}),
                           .body = body,
                           .checkpoint = policy})
                     .state);
    })(w);
  });
}
Tensor weights() { return full({32, 32}, 0.01f); }

TEST(HeldMemoryTest, GoesWithTheFunction) {
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(8), Checkpoint::budget(1 << 16)})
    on_new_thread([&] {
      const Tensor w = weights();
      const std::int64_t before = buffers();
      {
        const auto gradient = gradient_of_steps(200, policy);
        gradient(w);
        EXPECT_GT(buffers() - before, 10'000);
        {
          const auto copy = gradient;
          copy(w);
        }
        EXPECT_EQ(peaks_of([&] { gradient(w); }).buffers.peak, 0) << "a copy frees nothing";
      }
      EXPECT_EQ(buffers(), before);
    });
}

TEST(HeldMemoryTest, DoesNotCountInThePeakOfTheNextFunction) {
  on_new_thread([] {
    const Tensor w = weights();
    const auto peak = [&] { return peaks_of([&] { gradient_of_steps(100)(w); }).buffers.peak; };
    const std::int64_t alone = peak();
    const std::int64_t before = buffers();
    gradient_of_steps(2000)(w);
    EXPECT_EQ(buffers(), before);
    EXPECT_EQ(peak(), alone);
  });
}

TEST(HeldMemoryTest, StaysForFunctionsThatExist) {
  on_new_thread([] {
    const Tensor w = weights();
    const std::int64_t before = buffers();
    const auto small = gradient_of_steps(100);
    small(w);
    const std::int64_t needed = buffers() - before;
    // 100 steps can use the memory of 150 steps, but not the memory of 2000.
    for (const std::int64_t steps : {20, 100, 150, 2000}) {
      {
        const auto other = gradient_of_steps(steps);
        for (int turn = 0; turn < 2; ++turn) {
          other(w);
          small(w);
        }
      }
      EXPECT_LE(buffers() - before, needed) << steps;
      small(w);
      EXPECT_EQ(buffers() - before, needed) << steps;
      EXPECT_EQ(peaks_of([&] { small(w); }).buffers.peak, 0) << steps;
    }
  });
}

TEST(HeldMemoryTest, MemoryOfTheLargerFunctionOutlivesTheSmallerOne) {
  on_new_thread([] {
    const Tensor w = weights();
    const std::int64_t before = buffers();
    const auto large = gradient_of_steps(150);
    large(w);
    const std::int64_t needed = buffers() - before;
    gradient_of_steps(100)(w);  // in the memory of the larger one
    EXPECT_EQ(buffers() - before, needed);
    EXPECT_EQ(peaks_of([&] { large(w); }).buffers.peak, 0);
  });
}

TEST(HeldMemoryTest, GrowingBatchesTakeAtMostThreeTimesTheMemoryOfTheLongest) {
  if (kAllocatesEachBlock) GTEST_SKIP() << "capacities are exact with a sanitizer";
  const Dim feature("feature", 64), rows("batch", 16);
  const Tensor w = full({feature, Dim("hidden", 64)}, 0.01f);
  const auto make_gradient = [&] {
    return jit([&](const Tensor& x) {
      return grad([&](const Tensor& x) { return sum(square(matmul(tanh(x), w, feature))); })(x);
    });
  };
  const auto batch = [&](int length) {
    return ones({Dim("time", full({rows}, length, i32)), rows, feature});
  };
  std::int64_t of_longest = 0;
  on_new_thread([&] {
    const std::int64_t before = buffers();
    const auto gradient = make_gradient();
    gradient(batch(140));
    of_longest = buffers() - before;
  });
  EXPECT_GT(of_longest, 500'000);
  on_new_thread([&] {
    const std::int64_t before = buffers();
    {
      const auto gradient = make_gradient();
      for (int length = 20; length <= 140; ++length) gradient(batch(length));
      EXPECT_LE(buffers() - before, 3 * of_longest) << "capacities are powers of two";
    }
    EXPECT_EQ(buffers(), before);
  });
}

TEST(HeldMemoryTest, GoesWithATraceThatIsReplaced) {
  on_new_thread([] {
    const auto total = jit(
        [](const Tensor& x) {
          return sum(matmul(tanh(x), transpose(x, {1, 0})));
        },
        {.max_traces = 1});
    const std::int64_t before = buffers();
    total(ones({4, 8}));
    const std::int64_t needed = buffers() - before;
    total(ones({400, 800}));
    EXPECT_GT(buffers() - before, 100 * needed);
    total(ones({4, 8}));
    EXPECT_EQ(buffers() - before, needed);
  });
}

TEST(HeldMemoryTest, StaysWithAPullback) {
  on_new_thread([] {
    const std::int64_t before = buffers();
    auto square_of_sines = std::make_optional(jit([](const Tensor& x) {
      return sum(square(sin(matmul(x, transpose(x, {1, 0})))));
    }));
    {
      const auto [value, pullback] = vjp(*square_of_sines, ones({64, 64}));
      pullback(scalar(1.));
      square_of_sines.reset();
      EXPECT_GT(buffers(), before);
      pullback(scalar(1.));
    }
    EXPECT_EQ(buffers(), before);
  });
}

TEST(HeldMemoryTest, GoesWithAFunctionThatThrows) {
  on_new_thread([] {
    const std::int64_t before = buffers();
    {
      const auto checked = jit([](const Tensor& x) {
        const Tensor y = matmul(tanh(x), transpose(x, {1, 0}));
        return assert_that(sum(x) > 0, "the sum is not positive", sum(y));
      });
      for (int i = 0; i < 2; ++i) {
        checked(ones({64, 64}));
        EXPECT_THROW(checked(-ones({64, 64})), Error);
        checked(ones({64, 64}));
      }
      EXPECT_GT(buffers(), before);
      EXPECT_THROW(checked(-ones({64, 64})), Error);
    }
    EXPECT_EQ(buffers(), before);
  });
}

TEST(HeldMemoryTest, MemoryOfAnotherThreadGoesWithItsNextPlan) {
  on_new_thread([] {
    const Tensor w = weights();
    const std::int64_t before = buffers();
    auto large = std::make_optional(gradient_of_steps(2000));
    const auto small = gradient_of_steps(20);
    std::binary_semaphore has_run(0), is_gone(0);
    std::thread other([&] {
      (*large)(w);
      has_run.release();
      is_gone.acquire();
      EXPECT_GT(buffers() - before, 1'000'000);
      small(w);
      EXPECT_LT(buffers() - before, 1'000'000);
    });
    has_run.acquire();
    large.reset();
    is_gone.release();
    other.join();
    small(w);
    EXPECT_GT(buffers(), before);
  });
}

TEST(HeldMemoryTest, IsOfTheThreadOfTheLastCall) {
  on_new_thread([] {
    const Tensor w = weights();
    const std::int64_t before = buffers();
    {
      const auto gradient = gradient_of_steps(200);
      gradient(w);
      const std::int64_t needed = buffers() - before;
      std::thread([&] {
        gradient(w);
        EXPECT_GT(buffers() - before, needed);
      }).join();
      gradient_of_steps(20)(w);  // frees buffers that the gradient left here
      EXPECT_LT(buffers() - before, needed);
      gradient(w);
    }
    EXPECT_EQ(buffers(), before);
  });
}

}  // namespace
}  // namespace reel
