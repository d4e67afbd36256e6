// Denormal numbers are flushed to zero in plans, on all their threads, and kept elsewhere.
#include "reel/core/runtime/denormals.h"

#include <gtest/gtest.h>

#include <atomic>

#include "reel/core/runtime/parallel.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

/// Returns x · 2^-140; f32 is normal down to 2^-126.
Tensor halved(const Tensor& x) {
  return fori_loop(
      0, 140, [](const Tensor&, const Tensor& h) { return h * 0.5f; }, x);
}

TEST(DenormalsTest, CountAsZeroInPlansOnly) {
  const Tensor x = ones({3}), small = halved(x);
  EXPECT_GT(small.to_vector<float>()[0], 0.f);
  expect_same_bits(jit(halved)(x), zeros({3}));
  expect_same_bits(jit(halved, {.passes = {.flush_denormals = false}})(x), small);
  for (const Executor executor : {Executor::interpreter, Executor::dataflow})
    expect_same_bits(jit(halved, {.executor = executor})(x), small);
  // Denormal operands are flushed as well, and gradients. f64 represents smaller numbers.
  expect_same_bits(jit([](const Tensor& x) { return x * 4.f; })(small), zeros({3}));
  expect_same_bits(jit(grad([](const Tensor& x) { return sum(halved(x)); }))(x), zeros({3}));
  const Tensor wide = ones({3}, f64);
  expect_same_bits(jit(halved)(wide), halved(wide));
}

TEST(DenormalsTest, TheModeOfTheCallerComesBack) {
  const auto fails = [](const Tensor& x, const Tensor& i) { return gather(halved(x), i, 0); };
  const auto f = jit(fails);
  for (const bool flushes : {false, true}) {
    const DenormalMode before = DenormalMode::now();
    {
      const DenormalScope scope(flushes ? DenormalMode::flushing() : before);
      const DenormalMode mode = DenormalMode::now();
      f(ones({3}), scalar(1));
      EXPECT_TRUE(DenormalMode::now() == mode);
      EXPECT_THROW(f(ones({3}), scalar(7)), IndexError);
      EXPECT_TRUE(DenormalMode::now() == mode);
    }
    EXPECT_TRUE(DenormalMode::now() == before);
  }
}

TEST(DenormalsTest, AllThreadsDoAsTheCaller) {
  const Threads several(4);
  const auto count_flushing = [] {
    std::atomic<int> result = 0;
    parallel_for(200, [&](int) { result += DenormalMode::now() == DenormalMode::flushing(); });
    return result.load();
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(count_flushing(), 0);
    const DenormalScope scope(DenormalMode::flushing());
    EXPECT_EQ(count_flushing(), 200);
  }
}

}  // namespace
}  // namespace reel
