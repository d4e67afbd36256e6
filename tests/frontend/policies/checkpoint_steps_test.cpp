// Checkpoint: the number of body runs is the theoretical one for all lengths and numbers of slots.
#include <atomic>
#include <cmath>

#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/tests/modes.h"
#include "reel/tests/recomputation.h"
#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"
#include "reel/trace/executors/checkpoints/recomputed_residuals.h"

namespace reel {
namespace {

std::atomic<std::int64_t> runs{0};

/// Returns x and counts a run of the iteration that applies it. The gradient does not apply it.
const Op counted_op{
    .name = "counted",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          ++runs;
          a.out[0] = a.input(0);
        },
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { at.add(0, at.cotangent()); },
};

/// The work of a loop under a budget.
struct Theory {
  std::int64_t kept = 0;       ///< checkpoints that the forward run ends with
  std::int64_t gap = 1;        ///< steps between two of them
  std::int64_t body_runs = 0;  ///< forward, towards other states, and to save residuals
};

/// Returns the predicted work for `steps` iterations. slots: the checkpoints that the budget
/// allows, a quarter of them (rounded up) for the gradient. leaf: the iterations in memory at a
/// time.
///
/// While the loop runs, the stride doubles whenever all other slots are taken. In the end it is the
/// smallest power of two for which the slots suffice, for any length. The gradient reverses each
/// gap between checkpoints by the binomial schedule, with its own slots and the gap's checkpoint.
Theory theory(std::int64_t steps, std::int64_t slots, std::int64_t leaf) {
  const std::int64_t for_back = (slots + 3) / 4,
                     for_forward = std::max<std::int64_t>(slots - for_back, 1);
  Theory result;
  while ((steps + result.gap - 1) / result.gap > for_forward) result.gap *= 2;
  result.kept = (steps + result.gap - 1) / result.gap;
  result.body_runs = 2 * steps;
  for (std::int64_t first = 0; first < steps; first += result.gap) {
    const std::int64_t count = std::min(result.gap, steps - first),
                       in_memory = std::min(leaf, result.gap);
    const std::int64_t most = std::max<std::int64_t>(slots - for_forward, 0) + 1;
    result.body_runs += in_memory * least_advances((count + in_memory - 1) / in_memory, most);
  }
  return result;
}

class CheckpointStepsTest : public ::testing::TestWithParam<RunMode> {
 protected:
  template <class F>
  std::int64_t body_runs(const F& f, const Tensor& at) const {
    runs = 0;
    InMode(grad(f), GetParam())(at);
    return runs;
  }
  /// Returns the number of body runs that saved_values predicts.
  template <class F>
  static std::int64_t foretold(const F& f, const Tensor& at, int steps) {
    return std::llround(saved_values(f)(at).loops.at(0).runs * steps);
  }
};
INSTANTIATE_TEST_SUITE_P(StepByStep, CheckpointStepsTest,
                         ::testing::Values(RunMode::eager, RunMode::interpreter, RunMode::plan,
                                           RunMode::dataflow1, RunMode::dataflow10),
                         name_of_mode);

constexpr std::int64_t kWhich = 16;  ///< bytes that store a checkpoint's step number
const std::vector<int>& lengths() {
  static const std::vector<int> all{1,  2,  3,  4,  5,  6,  7,  8,  9,   12,  15,  16,  17,  24,
                                    31, 32, 33, 47, 64, 65, 96, 97, 100, 128, 129, 200, 256, 300};
  return all;
}

/// An iteration saves 1 KiB, more than half of each budget, so only one iteration is in memory at a
/// time.
TEST_P(CheckpointStepsTest, OneStepAtATimeInMemory) {
  const Tensor wide = random_normal({128}, f64);
  for (const int steps : lengths())
    for (const std::int64_t slots : {1, 2, 3, 4, 5, 7, 8, 12, 16, 33}) {
      const auto f = [&](const Tensor& w) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor y = softmax(wide * (h * w), 0);
          return std::pair{None{}, bind(counted_op, {sum(y * y) + x})};
        };
        return scan(Scan{.initial = scalar(0.5, f64),
                         .xs = full({steps}, 0.1, f64),
                         .body = body,
                         .checkpoint = Checkpoint::budget(2 * slots * (8 + kWhich))})
            .state;
      };
      const Theory expected = theory(steps, slots, 1);
      ASSERT_EQ(body_runs(f, scalar(0.9, f64)), expected.body_runs)
          << steps << " steps, " << slots << " slots";
      EXPECT_EQ(foretold(f, scalar(0.9, f64), steps), expected.body_runs);
      if (slots == 1) {
        EXPECT_EQ(expected.body_runs, 2 * steps + steps * (steps - 1) / 2);
      }
      // Stride doubling bounds the gaps by twice the gap that as many slots need.
      if (expected.gap > 1) {
        EXPECT_LT(expected.gap * (slots - (slots + 3) / 4), 2 * steps);
      }
    }
}

/// An iteration saves its state only, 8 bytes. Half of the budget limits how many are in memory.
TEST_P(CheckpointStepsTest, ManyStepsAtATimeInMemory) {
  for (const int steps : lengths())
    for (const std::int64_t slots : {1, 2, 3, 4, 5, 8}) {
      const auto f = [&](const Tensor& w) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          return std::pair{None{}, bind(counted_op, {sin(h * w) + x})};
        };
        return scan(Scan{.initial = scalar(0.5, f64),
                         .xs = full({steps}, 0.1, f64),
                         .body = body,
                         .checkpoint = Checkpoint::budget(2 * slots * (8 + kWhich))})
            .state;
      };
      const Theory expected = theory(steps, slots, slots * (8 + kWhich) / 8);
      ASSERT_EQ(body_runs(f, scalar(0.9, f64)), expected.body_runs)
          << steps << " steps, " << slots << " slots";
      EXPECT_EQ(foretold(f, scalar(0.9, f64), steps), expected.body_runs);
    }
}

TEST_P(CheckpointStepsTest, UnknownLengthRunsTheBodyAsOftenAsPredicted) {
  using State = std::pair<Tensor, Tensor>;
  const Tensor wide = random_normal({128}, f64);
  for (const int steps : lengths())
    for (const std::int64_t slots : {1, 3, 4, 8, 16}) {
      const auto f = [&](const Tensor& w) {
        const auto body = [&](const State& s) {
          const Tensor y = softmax(wide * (s.second * w), 0);
          return State{s.first + 1, bind(counted_op, {sum(y * y) + 0.1})};
        };
        return while_loop([&](const State& s) { return s.first < steps; }, body,
                          State{scalar(0, i32), scalar(0.5, f64)},
                          {.checkpoint = Checkpoint::budget(2 * slots * (12 + kWhich))})
            .second;
      };
      ASSERT_EQ(body_runs(f, scalar(0.9, f64)), theory(steps, slots, 1).body_runs)
          << steps << " steps, " << slots << " slots";
    }
}

TEST_P(CheckpointStepsTest, CheckpointsAtIntervalsRunEachIterationTwice) {
  for (const int steps : lengths())
    for (const std::int64_t every : {0, 1, 4, 50, 1000}) {
      const auto f = [&](const Tensor& w) {
        const auto body = [&](const Tensor& x, const Tensor& h) {
          return std::pair{None{}, bind(counted_op, {sin(h * w) + x})};
        };
        return scan(Scan{.initial = scalar(0.5, f64),
                         .xs = full({steps}, 0.1, f64),
                         .body = body,
                         .checkpoint = every ? Checkpoint::every(every) : Checkpoint()})
            .state;
      };
      ASSERT_EQ(body_runs(f, scalar(0.9, f64)), every ? 2 * steps : steps)
          << steps << " steps, every " << every;
      if (every) {
        EXPECT_EQ(foretold(f, scalar(0.9, f64), steps), 2 * steps);
      }
    }
}

// A kernel that counts would keep the loop from being chunked, so this test reads the executor's
// counts of recomputed iterations.
class CheckpointChunksTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kState = 2 * 4 * 32 * 4;  ///< bytes of an LSTM's, in f32
  struct Problem {
    LstmCell cell;
    Tensor x;
  };
  static Problem problem(int steps) {
    const Dim time("time", steps), batch("batch", 4), in("in", 8);
    return {LstmCell::init(in, Dim("hidden", 32)), random_normal({time, batch, in})};
  }
  static auto loss(const Checkpoint& policy, bool reverse = false) {
    return [policy, reverse](const Problem& at) {
      return sum(recur(at.cell, at.x, at.x.dim("time"), {.reverse = reverse, .checkpoint = policy})
                     .outputs);
    };
  }
  static std::int64_t step_bytes() {
    return saved_values(loss(Checkpoint::every(1)))(problem(2)).loops.at(0).bytes;
  }
  /// steps: the iterations of a chunk.
  static void expect_theory(const Passes& passes, int length, std::int64_t steps,
                            std::int64_t slots, bool reverse = false) {
    SCOPED_TRACE(str(length, " steps in chunks of ", steps, ", ", slots, " slots, ", reverse));
    const std::int64_t budget = 2 * slots * (kState + kWhich), units = (length + steps - 1) / steps;
    const auto f = jit(grad(loss(Checkpoint::budget(budget), reverse)), {.passes = passes});
    const Problem at = problem(length);
    f(at);
    const RecomputedSteps before = recomputed_steps();
    f(at);
    const RecomputedSteps after = recomputed_steps();
    const std::int64_t leaf = std::max<std::int64_t>(budget / 2 / (steps * step_bytes()), 1),
                       body_runs = theory(units, slots, leaf).body_runs;
    EXPECT_EQ(after.saved - before.saved, length);
    // Without reverse, the only shorter chunk is the last one, which is never run to reach another
    // chunk.
    if (reverse && length % steps)
      EXPECT_LE(after.advanced - before.advanced, (body_runs - 2 * units) * steps);
    else
      EXPECT_EQ(after.advanced - before.advanced, (body_runs - 2 * units) * steps);
    const std::string text = f.explain(), part = "each iteration runs ";
    ASSERT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NEAR(std::stod(text.substr(text.find(part) + part.size())),
                static_cast<double>(body_runs) / static_cast<double>(units), 0.051);
  }
};

TEST_F(CheckpointChunksTest, ChunksOfTwoSteps) {
  Passes passes;
  passes.chunk_steps = 2;
  for (const int length : {4, 7, 16, 33, 64, 129, 300})
    for (const std::int64_t slots : {1, 2, 3, 5, 8, 16, 40}) {
      expect_theory(passes, length, 2, slots);
      expect_theory(passes, length, 2, slots, true);
    }
}

TEST_F(CheckpointChunksTest, ChunksOfALongLoop) {
  const int length = 5000;
  const auto f = jit(grad(loss(Checkpoint::every(1))));
  f(problem(length));
  const std::string text = f.explain(), part = " chunks of ";
  ASSERT_NE(text.find(part), std::string::npos) << text;
  const std::int64_t steps = std::stoll(text.substr(text.find(part) + part.size()));
  EXPECT_GT(steps, 1);
  for (const std::int64_t slots : {1, 3, 8, 40}) {
    expect_theory({}, length, steps, slots);
    expect_theory({}, 78 * static_cast<int>(steps) + 1, steps, slots, true);
  }
}

// Half of the largest budget, divided into slots for states of a few bytes.
TEST_F(CheckpointChunksTest, ABudgetOfAnySizeIsOne) {
  const Problem at = problem(20);
  const auto all = grad(loss({}))(at), of_most = grad(loss(Checkpoint::budget(INT64_MAX)))(at);
  expect_same_bits(of_most.x, all.x);
  EXPECT_EQ(CheckpointSchedule::most(INT64_MAX), INT64_MAX - INT64_MAX / 4 - 1);
}

}  // namespace
}  // namespace reel
