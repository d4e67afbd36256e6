// saved_values: what is said to be kept is what a loop keeps.
#include <gtest/gtest.h>

#include <sstream>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

auto loss(const Checkpoint& checkpoint, const SwapMemory& swap = false) {
  return [checkpoint, swap](const Tensor& w, const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(h, w) + x);
      return std::pair{None{}, next};
    };
    return sum(scan(Scan{.initial = zeros({2, 4}, f64),
                         .xs = x,
                         .body = body,
                         .checkpoint = checkpoint,
                         .swap_memory = swap})
                   .state);
  };
}
constexpr std::int64_t kState = 2 * 4 * 8;  // bytes
constexpr int kSteps = 10;

KeptValues kept(const Checkpoint& checkpoint, const SwapMemory& swap = false) {
  return saved_values(loss(checkpoint, swap))(ones({4, 4}, f64), ones({kSteps, 2, 4}, f64));
}

TEST(SavedValuesTest, OfEveryStep) {
  const KeptValues all = kept({});
  // What goes into tanh_grad, and what goes into the product.
  EXPECT_EQ(all.bytes(), 2 * kSteps * kState + 4) << str(all);
  EXPECT_TRUE(str(all).find("scan \"scan\": tanh: f64[10,2,4], 640 B\n") != std::string::npos)
      << str(all);
}

TEST(SavedValuesTest, OfCheckpoints) {
  const auto states = [](const KeptValues& all) {
    std::int64_t bytes = 0;
    for (const KeptValue& value : all.values)
      if (value.op == "scan \"scan\": checkpoints of a carry") bytes += value.bytes;
    return bytes;
  };
  EXPECT_EQ(states(kept(Checkpoint::every(4))), 3 * kState);
  EXPECT_EQ(states(kept(Checkpoint::every(1))), kSteps * kState);
  // Slots for four, of which one is for the way back: after the third every second goes.
  EXPECT_EQ(states(kept(Checkpoint::budget(8 * (kState + 16)))), 3 * kState);
}

TEST(SavedValuesTest, SaysWhatALoopUnderACheckpointTakesUntilItsGradientIsDone) {
  EXPECT_TRUE(
      str(kept(Checkpoint::every(4)))
          .ends_with("scan \"scan\", until its gradient is done: at most 240 B of "
                     "checkpoints, and 512 B of 4 steps run again at a time; each step runs 2.0 "
                     "times\n"))
      << str(kept(Checkpoint::every(4)));
  EXPECT_TRUE(kept({}).loops.empty());
}

// Of a loop whose length only a run tells the policy itself is the bound.
TEST(SavedValuesTest, SaysWhatALoopOfUnknownLengthTakesAtMost) {
  const auto loop = [](const Checkpoint& policy) {
    const auto until = [policy](const Tensor& w) {
      return sum(while_loop([](const Tensor& h) { return sum(h) < 9.0; },
                            [&](const Tensor& h) { return tanh(h) * w; }, ones({16}, f64),
                            {.checkpoint = policy}));
    };
    return saved_values(until)(scalar(1.1, f64));
  };
  // A state of 128 bytes, and of a step as many.
  const KeptByLoop of_budget = loop(Checkpoint::budget(10'000)).loops.at(0);
  EXPECT_EQ(of_budget.checkpoints, 5000);
  EXPECT_EQ(of_budget.bytes, 5000);
  EXPECT_EQ(of_budget.steps, 5000 / 128);
  EXPECT_EQ(of_budget.runs, -1);
  const KeptByLoop of_little = loop(Checkpoint::budget(1)).loops.at(0);
  EXPECT_EQ(of_little.checkpoints, 128 + 16);
  EXPECT_EQ(of_little.bytes, 128);
  EXPECT_EQ(of_little.steps, 1);
  const std::string every = str(loop(Checkpoint::every(4)));
  EXPECT_TRUE(every.ends_with(
      "until its gradient is done: at most as many bytes as a run tells of checkpoints, and 512 "
      "B of 4 steps run again at a time\n"))
      << every;
}

TEST(SavedValuesTest, SaysWhatLiesInAFile) {
  for (const KeptValue& value : kept({}, true).values)
    EXPECT_EQ(value.is_spilled, value.type.rank() > 0) << value.op;
}

TEST(SavedValuesTest, SaysWhatOfThatIsInMemory) {
  const auto f = loss({}, Spill{.bytes_in_memory = 8 << 20});
  const std::int64_t steps = 200'000;
  const KeptValues all = saved_values(f)(ones({4, 4}, f64), ones({steps, 2, 4}, f64));
  // Of the state and of tanh's result four blocks of a MiB each, and three on their way.
  EXPECT_EQ(all.bytes(), 2 * steps * kState + 4) << all;
  EXPECT_EQ(all.bytes_in_memory(), 2 * 7 * (1 << 20) + 4) << all;
  EXPECT_EQ(all.bytes_in_files(), 2 * steps * kState) << all;
  EXPECT_TRUE(
      str(all).find(": tanh: f64[200000,2,4], 12.2 MiB, in a file but for at most 7.0 MiB") !=
      std::string::npos)
      << all;
  EXPECT_TRUE(
      str(all).find("in all: 24.4 MiB, at most 14.0 MiB at a time in memory, and 24.4 MiB in"
                    " files\n") != std::string::npos)
      << all;
  // What fits into the blocks that there are at least never leaves memory.
  const KeptValues few = kept({}, true);
  EXPECT_EQ(few.bytes_in_memory(), few.bytes());
  EXPECT_EQ(few.bytes_in_files(), 0);
}

TEST(SavedValuesTest, OfAFunctionWithoutLoops) {
  const Tensor w = ones({3, 3}), x = ones({2, 3});
  const auto plain = [](const Tensor& w, const Tensor& x) {
    return sum(square(matmul(checkpoint_name(exp(matmul(x, w)), "hidden"), w)));
  };
  const auto checkpointed = [&](const Tensor& w, const Tensor& x) {
    return checkpoint(plain)(w, x);
  };
  EXPECT_GT(saved_values(plain)(w, x).bytes(), 0);
  EXPECT_EQ(saved_values(checkpointed)(w, x).bytes(), 0);
}

TEST(SavedValuesTest, TellsTheNamesThatTheUserGave) {
  const auto names = [](const KeptValues& all) {
    std::string result;
    for (const KeptValue& value : all.values)
      if (!value.name.empty()) result += value.name + ": " + std::to_string(value.bytes) + "; ";
    return result;
  };
  const auto loss = [](const Tensor& w, const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor gates = checkpoint_name(matmul(h, w) + x, "gates");
      return std::pair{None{}, checkpoint_name(exp(gates), "hidden")};
    };
    return sum(scan(Scan{.initial = zeros({2, 4}, f64), .xs = x, .body = body}).state);
  };
  const KeptValues all = saved_values(loss)(ones({4, 4}, f64), ones({kSteps, 2, 4}, f64));
  EXPECT_EQ(names(all), "hidden: " + std::to_string(kSteps * kState) + "; ") << str(all);
  const auto keeps_gates = [&](const Tensor& w, const Tensor& x) {
    return sum(checkpoint(
        [&](const Tensor& x) { return exp(checkpoint_name(matmul(x, w), "gates")); },
        [](const StepValue& v) { return v.name == "gates" ? Saving::keep : Saving::recompute; })(
        x));
  };
  const KeptValues of_rule = saved_values(keeps_gates)(ones({4, 4}, f64), ones({2, 4}, f64));
  EXPECT_EQ(names(of_rule), "gates: " + std::to_string(kState) + "; ") << str(of_rule);
}

TEST(SavedValuesTest, RunsNothing) {
  testing::internal::CaptureStdout();
  saved_values([](const Tensor& x) { return sum(square(print(x, "x"))); })(ones({3}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace reel
