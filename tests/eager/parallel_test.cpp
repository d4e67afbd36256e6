// parallel_for: every part runs once on any number of threads; the caller's state in parts; errors.
// Under ThreadSanitizer (preset tsan) it also shows that there are no data races.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "reel/core/runtime/denormals.h"
#include "reel/core/runtime/helpers.h"
#include "reel/core/types/mode.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// Runs with four threads on any number of processors.
class ParallelTest : public ::testing::Test {
 protected:
  static constexpr int kParts = 6;

  ParallelTest() { set_threads(4); }
  ~ParallelTest() override { set_threads(before_); }

  /// Returns fn's result for each part.
  template <class F>
  static std::vector<Tensor> in_parts(const F& fn) {
    std::vector<Tensor> results(kParts);
    parallel_for(kParts, [&](int i) { results[i] = fn(i); });
    return results;
  }

  /// A loss with a scan over a ragged dim; part i has its own data.
  Tensor loss(const Tensor& w, int i) const {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(h * w + x);
      return std::pair{next, next};
    };
    const Scan spec{.spatial_dim = time,
                    .initial = zeros({batch, feature}),
                    .xs = x * static_cast<double>(i + 1),
                    .body = step};
    return sum(square(scan(spec).ys));
  }

  const Dim batch{"batch", 3}, feature{"feature", 4};
  const Dim time{"time", tensor({3, 1, 2}, {batch})};
  const Tensor x = random_normal({batch, time, feature}), w = random_normal({feature});

 private:
  const int before_ = threads();
};

// The row blocks that run longest come first, so they must not start last.
TEST_F(ParallelTest, CallsBeginInTheirOrder) {
  set_threads(2);
  std::mutex mutex;
  std::vector<int> begun;
  std::atomic<int> done{0};
  parallel_for(kParts, [&](int i) {
    {
      const std::lock_guard lock(mutex);
      begun.push_back(i);
    }
    // The first part waits until the other thread has run all others.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(4);
    while (i == 0 && done < kParts - 1 && std::chrono::steady_clock::now() < patience)
      std::this_thread::yield();
    ++done;
  });
  std::erase(begun, 0);
  EXPECT_EQ(begun, (std::vector{1, 2, 3, 4, 5}));
}

TEST_F(ParallelTest, TensorsOfAllThreadsAreCountedOnReturn) {
  // Few bytes each, on all threads: a part waits a while for another thread.
  std::vector<Tensor> kept(kParts);
  const std::int64_t before = memory().values.current;
  std::atomic<int> begun{0};
  parallel_for(kParts, [&](int i) {
    ++begun;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (begun < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    kept[static_cast<std::size_t>(i)] = zeros({10});
  });
  EXPECT_EQ(memory().values.current - before, kParts * 40);
}

// oneTBB gives threads in an arena the flags of the first call, also the thread that leads helpers.
TEST_F(ParallelTest, LeadersOfHelpersFlushDenormalsAsTheCallerDoes) {
  set_threads(2);  // an arena that no call has entered
  {
    const DenormalScope scope(DenormalMode::flushing());
    parallel_for(kParts, [](int) {});
  }
  DenormalMode mode = DenormalMode::flushing();
  const auto note_mode = [](void* to) { *static_cast<DenormalMode*>(to) = DenormalMode::now(); };
  Helpers([](void*) {}, &mode).lead(note_mode);
  EXPECT_TRUE(mode == DenormalMode::now());
  const DenormalScope scope(DenormalMode::flushing());
  Helpers([](void*) {}, &mode).lead(note_mode);
  EXPECT_TRUE(mode == DenormalMode::flushing());
}

TEST_F(ParallelTest, EveryCallRunsOnce) {
  for (const int count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    parallel_for(count, [&](int i) { ++runs[static_cast<std::size_t>(i)]; });
    for (const std::atomic<int>& number : runs) EXPECT_EQ(number, 1);
  }
}

TEST_F(ParallelTest, ThreadsCanBeSet) {
  for (const int number : {1, 3}) {
    set_threads(number);
    EXPECT_EQ(threads(), number);
  }
  EXPECT_EQ(message_of<ArgumentError>([] { set_threads(0); }),
            "set_threads: got 0, but there can be from 1 to 1024");
  EXPECT_EQ(message_of<ArgumentError>([] { set_threads(1025); }),
            "set_threads: got 1025, but there can be from 1 to 1024");
  EXPECT_EQ(threads(), 3);
}

TEST_F(ParallelTest, RefusesANegativeCount) {
  EXPECT_EQ(message_of<ArgumentError>([] { parallel_for(-1, [](int) {}); }),
            "parallel_for: got a count of -1; give 0 or more");
}

TEST_F(ParallelTest, ThrowsTheErrorOfASerialLoop) {
  for (const int number : {1, 4}) {
    set_threads(number);
    for (int run = 0; run < 20; ++run) {
      std::atomic<int> before = 0, running = 0;
      const auto part = [&](int i) {
        ++running;
        if (i < 50) ++before;
        --running;
        if (i >= 50) throw std::out_of_range(std::to_string(i));
      };
      EXPECT_EQ(message_of<std::out_of_range>([&] { parallel_for(100, part); }), "50");
      EXPECT_EQ(before, 50);
      EXPECT_EQ(running, 0);
    }
  }
}

TEST_F(ParallelTest, CallsBehindAnErrorDoNotBegin) {
  set_threads(1);
  int runs = 0;
  const auto part = [&](int) {
    ++runs;
    throw std::out_of_range("first");
  };
  EXPECT_THROW(parallel_for(100, part), std::out_of_range);
  EXPECT_EQ(runs, 1);
}

TEST_F(ParallelTest, CallsMayNestAndSetThreads) {
  std::atomic<int> runs = 0;
  parallel_for(8, [&](int i) {
    set_threads(1 + i % 4);
    parallel_for(8, [&](int) { parallel_for(8, [&](int) { ++runs; }); });
  });
  EXPECT_EQ(runs, 8 * 8 * 8);
}

TEST_F(ParallelTest, AnErrorOfANestedCallComesThrough) {
  const auto part = [](int i) {
    parallel_for(4, [i](int j) {
      if (i == 2 && j >= 1) throw ShapeError(std::to_string(i) + ' ' + std::to_string(j));
    });
  };
  EXPECT_EQ(message_of<ShapeError>([&] { parallel_for(4, part); }), "2 1");
}

TEST_F(ParallelTest, TapesInCallsGiveTheGradientsOfASerialRun) {
  const auto gradient = [&](int i) { return grad([&](const Tensor& w) { return loss(w, i); })(w); };
  for (int run = 0; run < 5; ++run) {
    const std::vector<Tensor> gradients = in_parts(gradient);
    for (int i = 0; i < kParts; ++i) expect_same_bits(gradients[i], gradient(i));
  }
}

TEST_F(ParallelTest, CallsRunTracedFunctionsOfTheirOwn) {
  const auto gradient_of_part = [&](int i) {
    return jit(grad([this, i](const Tensor& w) { return loss(w, i); }));
  };
  std::vector<decltype(gradient_of_part(0))> functions;
  std::vector<Tensor> expected;  // of the others, one after the other
  for (int i = 0; i < kParts; ++i) {
    functions.push_back(gradient_of_part(i));
    expected.push_back(gradient_of_part(i)(w));
    expect_all_close(expected.back(), grad([&](const Tensor& w) { return loss(w, i); })(w), 1e-6);
  }
  for (int run = 0; run < 3; ++run) {
    const std::vector<Tensor> gradients = in_parts([&](int i) { return functions[i](w); });
    for (int i = 0; i < kParts; ++i) expect_same_bits(gradients[i], expected[i]);
  }
  for (const auto& function : functions) EXPECT_EQ(function.trace_count(), 1);
}

TEST_F(ParallelTest, TapesOfTheCallerDoNotSeeCalls) {
  const auto through_parts = [&](const Tensor& w) {
    Tensor squares;
    for (const Tensor& square_of_part : in_parts([&](int) { return square(w); }))
      squares = square_of_part;
    return sum(squares + w);
  };
  expect_same_bits(grad(through_parts)(w), ones({feature}));
}

TEST_F(ParallelTest, TracesOfTheCallerDoNotRecordCalls) {
  const auto f = jit([&](const Tensor& x) {
    const std::vector<Tensor> numbers = in_parts([](int i) {
      EXPECT_FALSE(is_tracing());
      return scalar(i) * scalar(2);
    });
    return x + numbers[3];
  });
  EXPECT_EQ(f(scalar(1)).item<int>(), 7);
  EXPECT_EQ(
      message_of<TraceError>([&] {
        jit([&](const Tensor& x) { return in_parts([&](int) { return x * x; })[0]; })(w);
      }),
      "mul: a value of type f32[feature=4] that was given to jit \"jit\" is used outside of it; "
      "values leave a body only through its state or outputs, a branch or a traced function "
      "only through its result");
}

TEST_F(ParallelTest, CallsDrawTheSameOnAnyNumberOfThreads) {
  const auto draw = [&] {
    manual_seed(7);
    std::vector<Tensor> all{random_normal({feature})};
    for (int call = 0; call < 2; ++call)
      for (const Tensor& drawn :
           in_parts([&](int) { return random_normal({feature}) + dropout(ones({feature}), 0.5); }))
        all.push_back(drawn);
    all.push_back(random_normal({feature}));
    return all;
  };
  set_threads(1);
  const std::vector<Tensor> expected = draw();
  set_threads(4);
  const std::vector<Tensor> drawn = draw();
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    expect_same_bits(drawn[i], expected[i]);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(drawn[i].to_vector<float>(), drawn[j].to_vector<float>()) << i << ' ' << j;
  }
}

TEST_F(ParallelTest, CallsThatDrawNothingTakeNoNumber) {
  manual_seed(7);
  const Tensor expected = random_normal({feature});
  manual_seed(7);
  in_parts([&](int) { return x; });
  expect_same_bits(random_normal({feature}), expected);
}

TEST_F(ParallelTest, CallsInABodyDrawAnewInEveryIteration) {
  manual_seed(7);
  std::vector<std::vector<float>> drawn;
  fori_loop(
      0, 3,
      [&](const Tensor&, const Tensor& s) {
        for (const Tensor& numbers : in_parts([&](int) { return random_uniform({feature}); }))
          drawn.push_back(numbers.to_vector<float>());
        return s;
      },
      scalar(0));
  ASSERT_GE(drawn.size(), 3u * kParts);
  std::sort(drawn.begin(), drawn.end());
  EXPECT_EQ(std::adjacent_find(drawn.begin(), drawn.end()), drawn.end());
}

}  // namespace
}  // namespace reel
