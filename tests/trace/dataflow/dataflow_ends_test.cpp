// Dataflow runs that end early: ops that fail, and calls that are cancelled.
#include <chrono>
#include <functional>
#include <semaphore>
#include <thread>

#include "reel/core/op/bind.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/many_threads.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"

namespace reel {
namespace {

constexpr int kBounds[] = {1, 2, 10, 32};

/// The number of runs of counted(), and the function `then` that its run number `at` calls.
std::atomic<int> runs{0};
int at = 0;
std::function<void()> then;

void count_to(int run, std::function<void()> what) {
  runs = 0;
  at = run;
  then = std::move(what);
}

/// Returns x. Never dropped if its result is read.
Tensor counted(const Tensor& x) {
  static const Op op{
      .name = "counted",
      .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
      .kernel =
          [](KernelArgs& a) {
            if (++runs == at) then();
            a.alias(0, 0);
          },
      .storage = OpStorage::input,
      .no_vjp = "is not needed",
      .has_effect = true,
  };
  return bind(op, {x});
}

/// Longer than any run of milliseconds on any machine; CTest's limit is longer still.
constexpr auto kForEver = std::chrono::seconds(240);

/// Cancels the runs in its scope if they do not end.
class Watchdog {
 public:
  Watchdog() : scope_(source_.get_token()), dog_([this] { watch(); }) {}
  ~Watchdog() {
    is_over_.release();
    dog_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch() {
    if (!is_over_.try_acquire_for(kForEver)) {
      ADD_FAILURE() << "it does not end";
      source_.request_stop();
    }
  }
  std::stop_source source_;
  CancellationScope scope_;
  std::binary_semaphore is_over_{0};
  std::thread dog_;
};

TEST(DataflowTest, E15_AnErrorNamesOpAndIterationAndTheGraphRunsAgain) {
  const auto reads = jit(
      [](Tensor n, TensorArray array, Tensor x) {
        return while_loop([&](Tensor i, Tensor, Tensor) { return i < n; },
                          [&](Tensor i, Tensor s, Tensor x) {
                            return std::tuple{i + 1, s + array.read(i), matmul(x, x)};
                          },
                          std::tuple{scalar(0), scalar(0.f), x}, {.name = "decode"});
      },
      {.executor = Executor::dataflow, .parallel_iterations = 4});
  const auto of_interpreter = jit(
      [](Tensor n, TensorArray array) {
        return while_loop([&](Tensor i, Tensor) { return i < n; },
                          [&](Tensor i, Tensor s) {
                            return std::tuple{i + 1, s + array.read(i)};
                          },
                          std::tuple{scalar(0), scalar(0.f)}, {.name = "decode"});
      },
      {.executor = Executor::interpreter});
  TensorArray array{TensorType(f32)};
  for (int i = 0; i < 3; ++i) array = array.push_back(scalar(1.f));
  const Tensor x = zeros({80, 80});
  const std::string expected = message_of<IndexError>([&] { of_interpreter(scalar(10), array); });
  EXPECT_NE(expected.find("in iteration 3 of while_loop \"decode\""), std::string::npos)
      << expected;
  // Iterations 4 and 5 fail as well, and may fail earlier in time.
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(message_of<IndexError>([&] { reads(scalar(10), array, x); }), expected);
  expect_values(std::get<1>(reads(scalar(3), array, x)), {3});
}

TEST(DataflowTest, TheErrorIsTheFirstInTheOrderOfTheProgram) {
  const auto f = [](Tensor i, TensorArray empty) {
    const auto [k, late] =
        while_loop([](Tensor k, Tensor) { return k < 50; },
                   [&](Tensor k, Tensor s) {
                     return std::tuple{
                         k + 1, cond(
                                    k == 40, [&] { return empty.read(k); }, [&] { return s + 1; })};
                   },
                   std::tuple{scalar(0), scalar(0.f)}, {.name = "late"});
    return late + empty.read(i);  // ready at once
  };
  const TensorArray empty{TensorType(f32)};
  const std::string expected = message_of<IndexError>(
      [&] { jit(f, {.executor = Executor::interpreter})(scalar(0), empty); });
  EXPECT_NE(expected.find("in iteration 40 of while_loop \"late\""), std::string::npos) << expected;
  for (const int bound : kBounds)
    EXPECT_EQ(message_of<IndexError>([&] {
                jit(f, {.executor = Executor::dataflow, .parallel_iterations = bound})(scalar(0),
                                                                                       empty);
              }),
              expected);
}

/// Expects that f(args...) throws an IndexError of gather in dataflow mode, for every bound and on
/// one and two threads. Cancels a run that does not end.
template <class F, class... Args>
void expect_error_beside_what_never_ends(const F& f, const Args&... args) {
  for (const int count : {1, 2}) {
    const Threads threads(count);
    for (const int bound : kBounds) {
      SCOPED_TRACE(str(bound, " iterations in flight on ", count, " threads"));
      const auto by_tokens = jit(f, {.executor = Executor::dataflow, .parallel_iterations = bound});
      const Watchdog watchdog;
      for (int call = 0; call < 2; ++call)  // the second call knows how long ops take
        EXPECT_EQ(message_of<IndexError>([&] { by_tokens(args...); }).substr(0, 7), "gather:");
    }
  }
}

const auto no_end = [](Tensor i) { return i < 10; };
const auto round_and_round = [](Tensor i) { return (i + 1) % 5; };

TEST(DataflowTest, AnOpThatFailsAtOnceEndsALoopBehindIt) {
  const auto f = [](const Tensor& x, const Tensor& index) {
    const Tensor fails = gather(x, index, 0);
    return std::pair{fails, while_loop(no_end, round_and_round, scalar(0))};
  };
  expect_error_beside_what_never_ends(f, ones({4}), tensor({9}, {1}, i32));
}

// The failing op waits behind short ops, and an endless loop always has another short op.
TEST(DataflowTest, AnOpThatTakesLongAndFailsEndsALoopBehindIt) {
  const auto f = [](const Tensor& x, const Tensor& index) {
    const Tensor fails = gather(x, index, 0);
    return std::tuple{fails, while_loop(no_end, round_and_round, scalar(0)),
                      while_loop(no_end, round_and_round, scalar(1))};
  };
  Tensor index = range(10'000);
  expect_error_beside_what_never_ends(f, ones({9'999, 10}), index);
}

TEST(DataflowTest, AnOpThatFailsEndsALoopBehindItThatHasNoOps) {
  const auto f = [](const Tensor& x, const Tensor& index, const Tensor& on) {
    const Tensor fails = gather(x, index, 0);
    return std::pair{fails, while_loop([&](Tensor, Tensor) { return on; },
                                       [](Tensor a, Tensor b) {
                                         return std::tuple{b, a};
                                       },
                                       std::tuple{scalar(1), scalar(2)})};
  };
  expect_error_beside_what_never_ends(f, ones({4}), tensor({9}, {1}, i32), scalar(true));
}

TEST(DataflowTest, AnIterationThatFailsEndsALoopBehindIt) {
  const auto f = [](const Tensor& x, const Tensor& limit) {
    const auto counts = [&](Tensor i, Tensor) { return i < limit; };
    const auto reads = [&](Tensor i, Tensor s) {
      return std::tuple{i + 1, s + sum(gather(x, i, 0))};
    };
    const auto inner = [](Tensor i) { return (i + while_loop(no_end, round_and_round, i)) % 5; };
    return std::pair{while_loop(counts, reads, std::tuple{scalar(0), scalar(0.f)}),
                     while_loop(no_end, inner, scalar(0))};
  };
  expect_error_beside_what_never_ends(f, ones({40, 3}), scalar(50));
}

/// Expects that f(args...) can be cancelled by another thread, started with the call, once
/// counted() has run `times` times.
template <class F, class... Args>
void expect_cancelled_after(int times, const F& f, const Args&... args) {
  for (const int count : {1, 2}) {
    const Threads threads(count);
    std::binary_semaphore runs_now{0};
    count_to(times, [&] { runs_now.release(); });
    std::stop_source source;
    std::thread other([&] {
      EXPECT_TRUE(runs_now.try_acquire_for(kForEver));
      source.request_stop();
    });
    const CancellationScope scope(source.get_token());
    EXPECT_EQ(message_of<CancelledError>([&] { f(args...); }),
              "the call was cancelled, as its CancellationScope's token was asked to");
    EXPECT_GE(runs, times);
    other.join();
  }
  count_to(0, {});
}

TEST(DataflowTest, E12_AnEndlessLoopCanBeCancelled) {
  const auto endless = jit(
      [](Tensor n, Tensor x) {
        return while_loop([&](Tensor i, Tensor) { return i < n; },
                          [](Tensor i, Tensor x) {
                            return std::tuple{counted(i % 5), matmul(x, x)};
                          },
                          std::tuple{scalar(0), x});
      },
      {.executor = Executor::dataflow});
  const Tensor x = zeros({80, 80});
  for (int call = 0; call < 2; ++call)  // with tracing, and without
    expect_cancelled_after(20, endless, scalar(10), x);
  expect_values(std::get<0>(endless(scalar(0), x)), {0});  // works again without a scope
}

TEST(DataflowTest, ALoopWithoutAnyOpCanBeCancelled) {
  const auto endless = jit(
      [](Tensor on, Tensor x, Tensor y) {
        return while_loop([&](Tensor, Tensor) { return on; },
                          [](Tensor x, Tensor y) {
                            return std::tuple{y, x};
                          },
                          std::tuple{counted(x), y});
      },
      {.executor = Executor::dataflow});
  for (int call = 0; call < 2; ++call)
    expect_cancelled_after(1, endless, scalar(true), scalar(1), scalar(2));
}

TEST(DataflowTest, AGraphWithoutLoopsCanBeCancelledInTheMiddle) {
  constexpr int kOps = 10'000, kMiddle = kOps / 2;
  const auto f = jit(
      [](Tensor x) {
        for (int i = 0; i < kOps; ++i) x = counted(x);
        return x;
      },
      {.executor = Executor::dataflow});
  f(scalar(1));
  for (const int count : {1, 2}) {
    const Threads threads(count);
    std::stop_source source;
    count_to(kMiddle, [&] { source.request_stop(); });
    const CancellationScope scope(source.get_token());
    EXPECT_THROW(f(scalar(1)), CancelledError);
    EXPECT_EQ(runs, kMiddle);
  }
  count_to(0, {});
  expect_values(f(scalar(1)), {1});
}

// The reported error is the first in program order, so the loop in front has to end first. The
// known error is reported when the call is cancelled.
TEST(DataflowTest, AnErrorBehindALoopWithoutEndIsSaidWhenTheCallIsCancelled) {
  const auto f = jit(
      [](const Tensor& x, const Tensor& index) {
        const Tensor before = while_loop(
            no_end, [](Tensor i) { return round_and_round(counted(i)); }, scalar(0));
        return std::pair{before, gather(x, index, 0)};
      },
      {.executor = Executor::dataflow});
  const Threads one(1);
  for (int call = 0; call < 2; ++call) {
    const Watchdog watchdog;
    std::stop_source source;
    count_to(1000, [&] { source.request_stop(); });
    const CancellationScope scope(source.get_token());
    const std::string message =
        message_of<CancelledError>([&] { f(ones({4}), tensor({9}, {1}, i32)); });
    // With debug information the line of the gather follows.
    EXPECT_TRUE(message.starts_with(
        "the call was cancelled, as its CancellationScope's token was asked to\nAn op had "
        "failed before, while earlier ops were still running:\n" +
        message_of<IndexError>([] { gather(ones({4}), tensor({9}, {1}, i32), 0); })))
        << message;
  }
  count_to(0, {});
}

// Three threads share the ops. After one op fails, running ops finish and no further op starts.
TEST(DataflowTest, E15_AThrowingOpStopsTheThreadsBesideIt) {
  constexpr int kBehind = 2000;
  const auto f = jit(
      [](const Tensor& x, const Tensor& index) {
        const Tensor fails = gather(x, counted(index), 0);
        Tensors behind;
        for (int chain = 0; chain < 4; ++chain) {
          Tensor y = x;
          for (int i = 0; i < kBehind; ++i) y = tanh(y);
          behind.push_back(y);
        }
        return std::pair{fails, stack(behind)};
      },
      {.executor = Executor::dataflow, .profile = true});
  const OnManyThreads threads;
  f(ones({4}), tensor({1}, {1}, i32));
  for (int call = 0; call < 5; ++call) {
    EXPECT_THROW(f(ones({4}), tensor({9}, {1}, i32)), IndexError);
    const auto run = last_recorded_run(f.graph());
    ASSERT_TRUE(run->failure && run->failure->at);
    int begun_before = 0;
    for (std::size_t i = run->failure->after + 1; i < run->activations.size(); ++i)
      begun_before += run->graph->nodes[static_cast<std::size_t>(run->activations[i].node)].kind ==
                      LoweredKind::op;
    EXPECT_LE(begun_before, 2);
    EXPECT_LT(run->activations.size(), 4u * kBehind);
  }
}

}  // namespace
}  // namespace reel
