// CancellationScope: loops stop soon after a request in every mode, and run again afterwards.
#include "reel/core/runtime/cancellation.h"

#include <atomic>
#include <optional>

#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/runtime/memory.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

/// The number of runs of counted(), and the run that requests the stop. Requesting it there saves
/// the test from guessing how long another thread should wait.
std::atomic<int> runs{0};
int stops_at = 0;
std::stop_source source;

/// Returns x, and passes its cotangent through. Never dropped, and runs in every iteration.
extern const Op counted_op;
Tensor counted(const Tensor& x) { return bind(counted_op, {x}); }
const Op counted_op{
    .name = "counted",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          if (++runs == stops_at) source.request_stop();
          a.alias(0, 0);
        },
    .storage = OpStorage::input,
    .vjp = [](Vjp& at) { at.add(0, counted(at.cotangent())); },
    .has_effect = true,
};

/// Returns x and counts, as an ordinary op without effects.
Tensor noted(const Tensor& x) {
  static const Op op{
      .name = "noted",
      .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
      .kernel = counted_op.kernel,
      .storage = OpStorage::input,
      .no_vjp = "is not needed",
  };
  return bind(op, {x});
}

class CancellationTest : public InEveryMode {
 protected:
  /// Expects that f(count, x) is cancelled by run number `stop` of counted(), and that f(3, x) is
  /// right afterwards.
  template <class F>
  void expect_cancelled(const F& f, int stop, int count = kForEver) const {
    constexpr int kSoon = 100;  // runs that may be in flight at the request
    const auto in_mode = run(f);
    const Tensor x = ones({2}), expected = f(scalar(3), x);
    for (int round = 0; round < 2; ++round) {
      runs = 0;
      stops_at = stop;
      source = std::stop_source();
      {
        const CancellationScope scope(source.get_token());
        EXPECT_THROW(in_mode(scalar(count), x), CancelledError);
      }
      EXPECT_GE(runs, stop);
      EXPECT_LT(runs, stop + kSoon);
      stops_at = 0;
      expect_all_close(in_mode(scalar(3), x), expected);
    }
  }
  static constexpr int kForEver = 2'000'000'000;
};
REEL_IN_EVERY_MODE(CancellationTest);

/// Applies tanh n times; its gradient needs counted()'s result.
Tensor squash(const Tensor& n, const Tensor& x, const WhileOptions& options = {}) {
  return std::get<1>(while_loop([&](Tensor i, Tensor) { return i < n; },
                                [](Tensor i, Tensor x) {
                                  return std::tuple{i + 1, tanh(counted(x))};
                                },
                                std::tuple{scalar(0), x}, options));
}
const auto squash_plainly = [](const Tensor& n, const Tensor& x) { return squash(n, x); };

TEST_P(CancellationTest, ALoopThatHasBegunIsCancelled) { expect_cancelled(squash_plainly, 20); }

TEST_P(CancellationTest, ALoopInALoopIsCancelled) {
  expect_cancelled(
      [](const Tensor& n, const Tensor& x) {
        return fori_loop(
            0, 2, [&](const Tensor&, const Tensor& x) { return squash(n, x); }, x);
      },
      20);
}

TEST_P(CancellationTest, ALoopInABranchIsCancelled) {
  expect_cancelled(
      [](const Tensor& n, const Tensor& x) {
        return cond(
            n > 0, [&] { return squash(n, x); }, [&] { return x; });
      },
      20);
}

TEST_P(CancellationTest, OpsBeforeACancelledLoopRunOnce) {
  const auto f = run([](const Tensor& x) {
    return while_loop([](const Tensor& y) { return all(y < 2.f); },
                      [](const Tensor& y) { return y * 1.f; }, noted(x));
  });
  runs = 0;
  stops_at = 1;
  source = std::stop_source();
  const CancellationScope scope(source.get_token());
  EXPECT_THROW(f(ones({2})), CancelledError);
  EXPECT_EQ(runs, 1);
}

TEST_P(CancellationTest, AScanIsCancelled) {
  expect_cancelled(
      [](const Tensor& n, const Tensor& x) {
        return fori_loop(
            0, n, [](const Tensor&, const Tensor& x) { return tanh(counted(x)); }, x);
      },
      20);
}

TEST_P(CancellationTest, LoopsUnderAPolicyAreCancelled) {
  for (const WhileOptions& options :
       {WhileOptions{.checkpoint = Checkpoint::every(4)}, WhileOptions{.swap_memory = true}})
    expect_cancelled(
        [&](const Tensor& n, const Tensor& x) {
          return grad([&](const Tensor& x) { return sum(squash(n, x, options)); })(x);
        },
        20);
}

TEST_P(CancellationTest, RecomputedFunctionCanBeCancelled) {
  expect_cancelled(
      [](const Tensor& n, const Tensor& x) {
        return grad([&](const Tensor& x) {
          return sum(square(checkpoint([&](const Tensor& x) { return squash(n, x); })(x)));
        })(x);
      },
      20);
}

TEST_P(CancellationTest, ReverseLoopCanBeCancelled) {
  constexpr int kSteps = 1000;
  expect_cancelled(
      [](const Tensor& n, const Tensor& x) {
        return grad([&](const Tensor& x) { return sum(squash(n, x)); })(x);
      },
      kSteps + 20, kSteps);
}

// The forward pass runs all iterations once. Later runs are recomputed iterations: the last 400, or
// those that lead to a checkpoint.
TEST_P(CancellationTest, RecomputedIterationsCanBeCancelled) {
  constexpr int kSteps = 1000;
  static const Op again_op{
      .name = "again",
      .type = counted_op.type,
      .kernel = counted_op.kernel,
      .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
  };
  for (const Checkpoint& policy : {Checkpoint::every(400), Checkpoint::budget(200)}) {
    const Memory before = memory();
    expect_cancelled(
        [&](const Tensor& n, const Tensor& x) {
          return grad([&](const Tensor& x) {
            const auto step = [](const Tensor& i, const Tensor& x) {
              return std::tuple{i + 1, tanh(bind(again_op, {x}))};
            };
            return sum(
                std::get<1>(while_loop([&](const Tensor& i, const Tensor&) { return i < n; }, step,
                                       std::tuple{scalar(0), x}, {.checkpoint = policy})));
          })(x);
        },
        kSteps + 20, kSteps);
    if (is_dataflow()) continue;  // counts of other threads' memory lag behind
    EXPECT_EQ(memory().checkpoints.current, before.checkpoints.current);
    EXPECT_EQ(memory().saved.current, before.saved.current);
  }
}

// A function that sets a deadline of its own must not override the caller's.
TEST_P(CancellationTest, EveryScopeThatIsAliveCounts) {
  const auto f = run(squash_plainly);
  const Tensor x = ones({2});
  f(scalar(3), x);
  for (const bool by_outer : {true, false})
    for (const bool has_innermost : {true, false}) {
      runs = 0;
      stops_at = 20;
      source = std::stop_source();
      const std::stop_source other;
      const CancellationScope outer((by_outer ? source : other).get_token());
      const CancellationScope inner((by_outer ? other : source).get_token());
      std::optional<CancellationScope> innermost;
      if (has_innermost) innermost.emplace(std::stop_token());  // one that never stops
      EXPECT_THROW(f(scalar(kForEver), x), CancelledError);
    }
  stops_at = 0;
}

TEST(CancellationScopes, AreOverInTheirOrder) {
  std::stop_source outer, inner;
  EXPECT_FALSE(cancellation_token().stop_possible());
  {
    const CancellationScope outer_scope(outer.get_token());
    {
      const CancellationScope inner_scope(inner.get_token());
      inner.request_stop();
      EXPECT_TRUE(cancellation_token().stop_requested());
    }
    EXPECT_FALSE(cancellation_token().stop_requested());
    outer.request_stop();
    const CancellationScope later((std::stop_source()).get_token());  // requested before
    EXPECT_TRUE(cancellation_token().stop_requested());
  }
  EXPECT_NO_THROW(check_cancellation());
}

TEST(CancellationErrors, SayThatItWasAsked) {
  source = std::stop_source();
  source.request_stop();
  const CancellationScope scope(source.get_token());
  for (const RunMode mode : {RunMode::eager, RunMode::interpreter, RunMode::plan, RunMode::chunks,
                             RunMode::dataflow1, RunMode::dataflow32, RunMode::dataflow_threads})
    EXPECT_EQ(
        message_of<CancelledError>([&] { InMode(squash_plainly, mode)(scalar(3), ones({2})); }),
        "the call was cancelled, as its CancellationScope's token was asked to");
}

}  // namespace
}  // namespace reel
