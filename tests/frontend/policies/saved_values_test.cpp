// saved_values: the predicted residuals are the residuals that a loop saves.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(SavedValuesTest, CountsResidualsOfEveryIteration) {
  const KeptValues all = kept({});
  // The operands of tanh_grad and of the product.
  EXPECT_EQ(all.bytes(), 2 * kSteps * kState + 4) << str(all);
  EXPECT_TRUE(str(all).find("scan \"scan\": tanh: f64[10,2,4], 640 B\n") != std::string::npos)
      << str(all);
}

TEST(SavedValuesTest, CountsCheckpointsOfEachPolicy) {
  const auto states = [](const KeptValues& all) {
    std::int64_t bytes = 0;
    for (const KeptValue& value : all.values)
      if (value.op == "scan \"scan\": checkpoints of a carry") bytes += value.bytes;
    return bytes;
  };
  EXPECT_EQ(states(kept(Checkpoint::every(4))), 3 * kState);
  EXPECT_EQ(states(kept(Checkpoint::every(1))), kSteps * kState);
  // Slots for four checkpoints, including one for the gradient. After the third, every second one
  // is dropped.
  EXPECT_EQ(states(kept(Checkpoint::budget(8 * (kState + 16)))), 3 * kState);
}

TEST(SavedValuesTest, PrintsTheBytesOfALoopUnderACheckpoint) {
  EXPECT_TRUE(str(kept(Checkpoint::every(4)))
                  .ends_with("scan \"scan\", until its gradient is done: at most 240 B of "
                             "checkpoints, and 512 B of 4 iterations recomputed at a time; each "
                             "iteration runs 2.0 "
                             "times\n"))
      << str(kept(Checkpoint::every(4)));
  EXPECT_TRUE(kept({}).loops.empty());
}

// If the length is known only at run time, the policy itself gives the bound.
TEST(SavedValuesTest, BoundsTheBytesOfALoopOfUnknownLength) {
  const auto loop = [](const Checkpoint& policy) {
    const auto until = [policy](const Tensor& w) {
      return sum(while_loop([](const Tensor& h) { return sum(h) < 9.0; },
                            [&](const Tensor& h) { return tanh(h) * w; }, ones({16}, f64),
                            {.checkpoint = policy}));
    };
    return saved_values(until)(scalar(1.1, f64));
  };
  // The state has 128 bytes, and so have the residuals of an iteration.
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
      "until its gradient is done: at most an unknown number of bytes of checkpoints, and 512 "
      "B of 4 iterations recomputed at a time\n"))
      << every;
}

// If arrays are checkpoints, the message can only give the size of the other leaves.
TEST(SavedValuesTest, SaysThatElementsOfArraysAreLeftOut) {
  struct State {
    Tensor h;
    TensorArray all;
  };
  const auto f = [](const Tensor& w) {
    const auto body = [&](const Tensor& x, const State& s) {
      const Tensor h = tanh(s.h * w + x);
      return std::pair{None{}, State{h, s.all.push_back(h)}};
    };
    const State first{ones({4}, f64), TensorArray(TensorType(f64, {4})).push_back(ones({4}, f64))};
    return sum(scan(Scan{.initial = first,
                         .xs = ones({kSteps}, f64),
                         .body = body,
                         .checkpoint = Checkpoint::budget(64 << 10)})
                   .state.all[3]);
  };
  const std::string text = str(saved_values(f)(scalar(0.5, f64)));
  EXPECT_TRUE(text.find("at most 32.0 KiB of checkpoints without the elements of arrays, and 32.0 "
                        "KiB") != std::string::npos)
      << text;
}

// In inner loops as in outer ones, bounds that are plain numbers are known.
TEST(SavedValuesTest, CountsTheStepsOfLoopsInsideAndNamesTheirValues) {
  const auto f = [](bool is_fori) {
    return [is_fori](const Tensor& w, const Tensor& x) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const auto next = [&](const Tensor&, const Tensor& h) { return tanh(matmul(h, w)); };
        const auto step = [&](const Tensor& x, const Tensor& h) {
          return std::pair{None{}, next(x, h)};
        };
        const Tensor last =
            is_fori ? fori_loop(0, 5, next, h + x, {.name = "inner"})
                    : scan(Scan{.initial = h + x, .xs = ones({5}), .body = step, .name = "inner"})
                          .state;
        return std::pair{None{}, last};
      };
      return sum(scan(Scan{.initial = zeros({2, 4}, f64), .xs = x, .body = body}).state);
    };
  };
  for (const bool is_fori : {false, true}) {
    const KeptValues all = saved_values(f(is_fori))(ones({4, 4}, f64), ones({kSteps, 2, 4}, f64));
    const std::string inner = is_fori ? "fori_loop \"inner\"" : "scan \"inner\"";
    EXPECT_EQ(str(all), str("scan \"scan\": trip count: i32[], 4 B\nscan \"scan\": ", inner,
                            ": trip count: i32[10], 40 B\nscan \"scan\": ", inner,
                            ": a carry: f64[10,5,2,4], 3.1 KiB\nscan \"scan\": ", inner,
                            ": tanh: f64[10,5,2,4], 3.1 KiB\nin all: 6.3 KiB\n"));
    EXPECT_FALSE(all.has_unknown());
    EXPECT_EQ(all.bytes(), 2 * 5 * kSteps * kState + 4 * (kSteps + 1));
  }
  // If tensors have named dims, the iterations' dim gets a name, too.
  const Dim time("time", kSteps), batch("batch", 3);
  const auto of_names = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const auto next = [&](const Tensor&, const Tensor& h) { return tanh(h); };
      return std::pair{None{}, fori_loop(0, 5, next, h + x, {.name = "inner"})};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = zeros({batch}, f64), .xs = x, .body = body})
            .state);
  };
  const KeptValues names = saved_values(of_names)(ones({time, batch}, f64));
  EXPECT_NE(str(names).find("fori_loop \"inner\": tanh: f64[time=10,i=5,batch=3], "),
            std::string::npos)
      << names;
  const auto at_the_top = [](const Tensor& w) {
    return sum(fori_loop(0, 1000, [&](const Tensor&, const Tensor& h) { return tanh(h * w); },
                         ones({2, 4}, f64), {.checkpoint = Checkpoint::every(100)}));
  };
  const KeptValues all = saved_values(at_the_top)(scalar(0.5, f64));
  EXPECT_FALSE(all.has_unknown()) << all;
  EXPECT_EQ(all.loops.at(0).checkpoints, 10 * (kState + 16)) << all;
}

TEST(SavedValuesTest, TheSumNamesValuesOfUnknownSize) {
  const auto f = [](const Tensor& w) {
    return while_loop([](const Tensor& h) { return h < 9.0; },
                      [&](const Tensor& h) { return h + tanh(h * w); }, scalar(1.0, f64));
  };
  const KeptValues all = saved_values(f)(scalar(1.1, f64));
  EXPECT_TRUE(all.has_unknown());
  EXPECT_TRUE(str(all).ends_with("in all: 4 B and values of unknown size\n")) << all;
}

// Under a budget, the file also holds checkpoints that are dropped later.
TEST(SavedValuesTest, SaysHowManyCheckpointsGoToAFile) {
  const auto values = [](std::int64_t budget) {
    return saved_values(loss(Checkpoint::budget(budget), Spill{.bytes_in_memory = 1}))(
        ones({4, 4}, f64), ones({300'000, 2, 4}, f64));
  };
  const KeptValues in_file = values(24 << 20);
  // The forward loop has 117,964 of 157,286 slots. They take the first 117,964 iterations and then
  // every second one. In the end every fourth is left: 75,000, and 5,491 behind them.
  EXPECT_GT(in_file.bytes_in_files(), 150'000 * kState) << in_file;
  EXPECT_LT(in_file.bytes_in_memory(), (5 << 20) + 80'000 * 16 + 100) << in_file;
  // Half of the budget is not more than a window.
  const KeptValues in_memory = values(8 << 20);
  EXPECT_EQ(in_memory.bytes_in_files(), 0);
  EXPECT_TRUE(std::ranges::none_of(in_memory.values, &KeptValue::is_spilled)) << in_memory;
}

TEST(SavedValuesTest, MarksSpilledValues) {
  for (const KeptValue& value : kept({}, true).values)
    EXPECT_EQ(value.is_spilled, value.type.rank() > 0) << value.op;
}

TEST(SavedValuesTest, CountsTheWindowsOfSpilledValues) {
  const auto f = loss({}, Spill{.bytes_in_memory = 8 << 20});
  const std::int64_t steps = 200'000;
  const KeptValues all = saved_values(f)(ones({4, 4}, f64), ones({steps, 2, 4}, f64));
  // For the state and for tanh's result: four blocks of a MiB each, and three in transfer.
  EXPECT_EQ(all.bytes(), 2 * steps * kState + 4) << all;
  EXPECT_EQ(all.bytes_in_memory(), 2 * 7 * (1 << 20) + 4) << all;
  EXPECT_EQ(all.bytes_in_files(), 2 * steps * kState) << all;
  EXPECT_TRUE(
      str(all).find(": tanh: f64[200000,2,4], 12.2 MiB, in a file except at most 7.0 MiB") !=
      std::string::npos)
      << all;
  EXPECT_TRUE(
      str(all).find("in all: 24.4 MiB, at most 14.0 MiB at a time in memory, and 24.4 MiB in"
                    " files\n") != std::string::npos)
      << all;
  // Values that fit into the smallest number of blocks never leave memory.
  const KeptValues few = kept({}, true);
  EXPECT_EQ(few.bytes_in_memory(), few.bytes());
  EXPECT_EQ(few.bytes_in_files(), 0);
}

TEST(SavedValuesTest, CheckpointedFunctionHasNoResiduals) {
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

// Named dims are symbols in a trace. Results of a loop with a tensor as trip count have the same
// dims as all other values.
TEST(SavedValuesTest, KnowsTheDimsOfALoopWithACountThatIsATensor) {
  const Dim rows("rows", 3), cols("cols", 2);
  const auto f = [](const Checkpoint& policy) {
    return [policy](const Tensor& x) {
      const auto body = [](const Tensor&, const Tensor& h) { return sin(h); };
      return sum(fori_loop(0, cast(sum(x), i32), body, x, {.checkpoint = policy}) * x);
    };
  };
  const Tensor x = ones({rows, cols}, f64);
  const auto last = [&](const Checkpoint& policy) {
    for (const KeptValue& value : saved_values(f(policy))(x).values)
      if (value.op == "fori_loop \"fori_loop\": sin") return value.bytes;
    return std::int64_t{-1};
  };
  EXPECT_EQ(last({}), 3 * 2 * 8);
  EXPECT_EQ(last(Checkpoint::budget(10'000)), 3 * 2 * 8);
  EXPECT_EQ(saved_values(f(Checkpoint::budget(10'000)))(x).loops.at(0).checkpoints, 5000);
}

TEST(SavedValuesTest, AttentionWeightsAreNoResiduals) {
  const Dim queries("queries", 3), keys("keys", 4), features("features", 2), batch("batch", 2);
  const Tensor k = ones({keys, features}, f64);
  const auto plain = [&](const Tensor& q) { return sum(attention(q, k, k, keys, features)); };
  // The result and the logarithm of the denominator; no weights of 3 x 4.
  EXPECT_EQ(str(saved_values(plain)(ones({queries, features}, f64))),
            "div: f64[queries=3,features=2], 48 B\n"
            "add: f64[queries=3], 24 B\n"
            "in all: 72 B\n");
  const Dim rows("rows", tensor({3, 2}, {batch}, i32)), cols("cols", tensor({1, 4}, {batch}, i32));
  const auto ragged = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return sum(attention(q, k, v, cols, features, {.causal = rows}));
  };
  const Tensor q = ones({batch, rows, features}, f64), c = ones({batch, cols, features}, f64);
  const KeptValues all = saved_values(ragged)(q, c, c);
  EXPECT_EQ(all.bytes(), 2 * 3 * 2 * 8 + 2 * 3 * 8) << str(all);
  EXPECT_FALSE(all.has_unknown()) << str(all);
}

TEST(SavedValuesTest, RunsNothing) {
  testing::internal::CaptureStdout();
  saved_values([](const Tensor& x) { return sum(square(print(x, "x"))); })(ones({3}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(SavedValuesInTracesTest, AreRefused) {
  const auto f = jit([](const Tensor& x) {
    saved_values([](const Tensor& x) { return sum(tanh(x)); })(x);
    return x;
  });
  EXPECT_EQ(message_of<TraceError>([&] {
              f(tensor({1., 2.}));
            }),
            "saved_values: it records a function of its own, and cannot be called in a trace, or "
            "in a body or branch that is being recorded; call it outside");
}

}  // namespace
}  // namespace reel
