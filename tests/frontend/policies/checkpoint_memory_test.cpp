// Checkpoint: the memory of loops under a policy is the predicted memory, to the byte.
#include "reel/tests/modes.h"
#include "reel/tests/peaks.h"

namespace reel {
namespace {

constexpr std::int64_t kState = 4 * 32 * 8;  ///< bytes of a state
constexpr std::int64_t kWhich = 16;          ///< bytes that store a checkpoint's step number
constexpr std::int64_t kSaved = 2 * kState;  ///< of an iteration: its state, and tanh's result
constexpr std::int64_t kTaped = 4 + 16;      ///< on tapes: number of steps, random stream

/// Returns the loss of a scan over `steps` time steps as a function of its weights.
auto rnn(int steps, const Checkpoint& policy, const SwapMemory& swap = false) {
  return [x = full({steps, 4, 32}, 0.1, f64), first = full({4, 32}, 0.5, f64), policy,
          swap](const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, tanh(matmul(h, w) + x)};
    };
    return sum(
        scan(
            Scan{
                .initial = first, .xs = x, .body = body, .checkpoint = policy, .swap_memory = swap})
            .state);
  };
}
Tensor weights() { return full({32, 32}, 0.01, f64); }

class CheckpointMemoryTest : public ::testing::TestWithParam<RunMode> {
 protected:
  template <class F>
  Memory peaks(const F& f) const {
    const InMode gradient(grad(f), GetParam());
    const Tensor w = weights();
    gradient(w);
    const Memory most = peaks_of([&] { gradient(w); });
    EXPECT_EQ(memory().checkpoints.current, 0);
    EXPECT_EQ(memory().saved.current, 0);
    return most;
  }
  std::int64_t on_tapes() const { return GetParam() == RunMode::eager ? kTaped : 0; }
};
INSTANTIATE_TEST_SUITE_P(StepByStep, CheckpointMemoryTest,
                         ::testing::Values(RunMode::eager, RunMode::interpreter), name_of_mode);

TEST_P(CheckpointMemoryTest, CheckpointsAtIntervalsTakeThePredictedMemory) {
  for (const int steps : {1, 7, 64, 200})
    for (const int every : {1, 5, 16, 64, 1000}) {
      SCOPED_TRACE(str(steps, " steps, every ", every));
      const auto f = rnn(steps, Checkpoint::every(every));
      const KeptByLoop foretold = saved_values(f)(weights()).loops.at(0);
      EXPECT_EQ(foretold.checkpoints, (steps + every - 1) / every * (kState + kWhich));
      EXPECT_EQ(foretold.steps, std::min(every, steps));
      EXPECT_EQ(foretold.bytes, foretold.steps * kSaved);
      const Memory most = peaks(f);
      EXPECT_EQ(most.checkpoints.peak, foretold.checkpoints - kState) << "the first is ours";
      EXPECT_EQ(most.saved.peak, foretold.bytes + on_tapes());
    }
}

TEST_P(CheckpointMemoryTest, ABudgetBoundsCheckpointsAndResiduals) {
  for (const int steps : {1, 7, 64, 200})
    for (const std::int64_t slots : {1, 2, 3, 4, 7, 8, 13, 40}) {
      SCOPED_TRACE(str(steps, " steps, ", slots, " slots"));
      const std::int64_t budget = 2 * slots * (kState + kWhich);
      const auto f = rnn(steps, Checkpoint::budget(budget));
      const KeptByLoop foretold = saved_values(f)(weights()).loops.at(0);
      EXPECT_LE(foretold.checkpoints, budget / 2);
      EXPECT_LE(foretold.bytes, std::max(budget / 2, kSaved));
      const Memory most = peaks(f);
      // The first state belongs to the caller. The interpreter frees a checkpoint's step numbers
      // once they are read, but a tape does not. The difference shows if the gradient holds more
      // states than the forward pass saved.
      const std::int64_t which = foretold.checkpoints % kState,
                         states = foretold.checkpoints / kState, kept = which / kWhich;
      const bool lets_go = GetParam() == RunMode::interpreter && states > kept;
      EXPECT_EQ(most.checkpoints.peak, foretold.checkpoints - kState - (lets_go ? which : 0));
      EXPECT_EQ(most.saved.peak, foretold.bytes + on_tapes());
    }
}

// A file also holds checkpoints that are dropped later, and its memory is in blocks of a MiB. If
// that is more than half of the budget, checkpoints stay in memory.
TEST_P(CheckpointMemoryTest, ABudgetBesideAFileBoundsTheCheckpoints) {
  constexpr int kSteps = 6000;
  for (const std::int64_t budget : {1 << 17, 1 << 20, 8 << 20, 16 << 20, 64 << 20}) {
    SCOPED_TRACE(budget);
    const auto f = rnn(kSteps, Checkpoint::budget(budget), Spill{.bytes_in_memory = 1});
    const KeptValues kept = saved_values(f)(weights());
    const KeptByLoop foretold = kept.loops.at(0);
    EXPECT_EQ(std::ranges::any_of(kept.values, &KeptValue::is_spilled), budget >= 16 << 20) << kept;
    EXPECT_LE(foretold.checkpoints, budget / 2);
    const Memory most = peaks(f);
    EXPECT_LE(most.checkpoints.peak, foretold.checkpoints);
    EXPECT_GT(most.checkpoints.peak, foretold.checkpoints * 3 / 4);
    EXPECT_EQ(most.saved.peak, foretold.bytes + on_tapes());
  }
}

TEST_P(CheckpointMemoryTest, CheckpointsAtIntervalsBesideAFileTakeThePredictedMemory) {
  for (const int steps : {7, 600, 1500, 6000})
    for (const int every : {1, 4}) {
      SCOPED_TRACE(str(steps, " steps, every ", every));
      const auto f = rnn(steps, Checkpoint::every(every), Spill{.bytes_in_memory = 1});
      const KeptValues kept = saved_values(f)(weights());
      const std::int64_t states = (steps + every - 1) / every;
      // Two blocks in memory and three in transfer take 5 MiB.
      const std::int64_t in_memory = std::min<std::int64_t>(states * kState, 5 << 20);
      EXPECT_EQ(kept.loops.at(0).checkpoints, in_memory + states * kWhich);
      EXPECT_EQ(kept.bytes_in_files(), states * kState > 5 << 20 ? states * kState : 0);
      const Memory most = peaks(f);
      EXPECT_LE(most.checkpoints.peak, kept.loops.at(0).checkpoints);
      if (in_memory == states * kState) {
        EXPECT_EQ(most.checkpoints.peak, kept.loops.at(0).checkpoints);
      }
    }
}

// The number of checkpoints is unknown when the loop starts.
TEST_P(CheckpointMemoryTest, ABudgetBesideAFileWhereOnlyARunTellsHowLong) {
  for (const std::int64_t budget : {1 << 20, 16 << 20}) {
    const auto f = [budget](const Tensor& w) {
      const auto next = [&](const Tensor& i, const Tensor& h) {
        return std::tuple{i + 1, tanh(matmul(h, w) + 0.1)};
      };
      return sum(std::get<1>(while_loop(
          [](const Tensor& i, const Tensor&) { return i < 6000; }, next,
          std::tuple{scalar(0), full({4, 32}, 0.5, f64)},
          {.checkpoint = Checkpoint::budget(budget), .swap_memory = Spill{.bytes_in_memory = 1}})));
    };
    EXPECT_LE(peaks(f).checkpoints.peak, budget / 2);
  }
}

// The residuals of the inner loop of the current iteration exist twice until they are copied behind
// earlier residuals.
TEST_P(CheckpointMemoryTest, InnerLoopsTakeThePredictedMemory) {
  const Tensor xs = full({60, 4, 32}, 0.1, f64), of_step = full({6}, 0.1, f64),
               first = full({4, 32}, 0.5, f64);
  const auto over = [&](const Checkpoint& policy, bool is_fori) {
    return [&, policy, is_fori](const Tensor& w) {
      const auto next = [&](const Tensor& h) { return tanh(matmul(h, w)); };
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const auto with_number = [&](const Tensor&, const Tensor& h) { return next(h); };
        const auto with_x = [&](const Tensor& x, const Tensor& h) {
          return std::pair{None{}, next(h + x)};
        };
        return std::pair{
            None{}, is_fori ? fori_loop(0, 6, with_number, h + x)
                            : scan(Scan{.initial = h + x, .xs = of_step, .body = with_x}).state};
      };
      return sum(scan(Scan{.initial = first, .xs = xs, .body = body, .checkpoint = policy}).state);
    };
  };
  for (const Checkpoint& policy : {Checkpoint::every(10), Checkpoint::budget(1 << 18)})
    for (const bool is_fori : {false, true}) {
      const KeptByLoop foretold = saved_values(over(policy, is_fori))(weights()).loops.at(0);
      const Memory most = peaks(over(policy, is_fori));
      EXPECT_LE(most.checkpoints.peak, foretold.checkpoints) << is_fori;
      EXPECT_LE(most.saved.peak, foretold.bytes + on_tapes()) << is_fori;
      EXPECT_GT(most.saved.peak, foretold.bytes / 2) << is_fori;
      if (policy.steps()) {
        EXPECT_EQ(most.saved.peak, foretold.bytes + on_tapes());
      }
    }
}

TEST_P(CheckpointMemoryTest, InnerLoopsOverNamedDimsTakeThePredictedMemory) {
  const Dim time("time", 60), batch("batch", 4), h("h", 32);
  const Tensor x = full({time, batch, h}, 0.1, f64), first = full({batch, h}, 0.5, f64);
  for (const int every : {1, 16, 1000}) {
    const auto f = [&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& s) {
        const auto next = [&](const Tensor&, const Tensor& s) { return tanh(s * sum(w) + x); };
        return std::pair{None{}, fori_loop(0, 4, next, s)};
      };
      return sum(scan(Scan{.spatial_dim = time,
                           .initial = first,
                           .xs = x,
                           .body = body,
                           .checkpoint = Checkpoint::every(every)})
                     .state);
    };
    const KeptByLoop foretold = saved_values(f)(weights()).loops.at(0);
    const Memory most = peaks(f);
    EXPECT_LE(most.saved.peak, foretold.bytes + on_tapes()) << every;
    EXPECT_GT(most.saved.peak, foretold.bytes / 2) << every;
  }
}

// If the state is stacked as well, a dropped checkpoint's memory lives on as a value.
TEST_P(CheckpointMemoryTest, ABudgetOfALoopThatStacksItsState) {
  const auto f = [](const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(h, w) + x);
      return std::pair{next, next};
    };
    return sum(scan(Scan{.cond_dims = {},
                         .initial = full({4, 32}, 0.5, f64),
                         .xs = full({300, 4, 32}, 0.1, f64),
                         .cond = [](const Tensor& h) { return sum(h) < 1e9; },
                         .body = body,
                         .checkpoint = Checkpoint::budget(16 << 10)})
                   .state);
  };
  const Memory most = peaks(f);
  EXPECT_LE(most.checkpoints.peak, 8 << 10);
  EXPECT_LE(most.checkpoints.peak, saved_values(f)(weights()).loops.at(0).checkpoints);
}

// The state starts with 64 numbers and gains 64 in each iteration. The gradient must plan with the
// size at the end of a segment or of the loop.
TEST_P(CheckpointMemoryTest, ABudgetOfAStateThatBeginsSmall) {
  constexpr std::int64_t kRow = 64 * 8, kSteps = 200;
  for (const std::int64_t budget : {kSteps * kRow / 4, 2 * kSteps * kRow, 20 * kSteps * kRow}) {
    SCOPED_TRACE(budget);
    const auto f = [&](const Tensor& w) {
      return sum(
          while_loop([](const Tensor&, const Tensor& i) { return i < kSteps; },
                     [&](const Tensor& h, const Tensor& i) {
                       return std::pair{concat({tanh(h * sum(w)), ones({1, 64}, f64)}, 0), i + 1};
                     },
                     std::pair{ones({1, 64}, f64), scalar(0)},
                     {.shape_invariants = {PartialShape{unknown, 64}, std::nullopt},
                      .checkpoint = Checkpoint::budget(budget)})
              .first);
    };
    const Memory most = peaks(f);
    // An iteration reads the state before it and tanh's result.
    EXPECT_LE(most.checkpoints.peak, std::max(budget / 2, kSteps * kRow));
    EXPECT_LE(most.saved.peak, std::max(budget / 2, 3 * kSteps * kRow) + on_tapes());
  }
}

// The ys are not read; a gradient that needs their values must take them from the residuals of the
// policy.
TEST_P(CheckpointMemoryTest, UnreadYsTakeNoMemory) {
  const auto f = [](std::int64_t steps, std::int64_t rows, const Checkpoint& policy,
                    const SwapMemory& swap) {
    return [xs = full({steps, rows, 32}, 0.1, f64), first = full({rows, 32}, 0.5, f64), policy,
            swap](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = tanh(matmul(h, w) + x);
        return std::pair{next, next};
      };
      return sum(scan(Scan{.initial = first,
                           .xs = xs,
                           .body = body,
                           .checkpoint = policy,
                           .swap_memory = swap})
                     .state);
    };
  };
  EXPECT_EQ(peaks(f(200, 4, Checkpoint::every(16), false)).saved.peak, 16 * kSaved + on_tapes());
  const SavingRule none = [](const StepValue&) { return Saving::recompute; };
  EXPECT_EQ(peaks(f(200, 4, Checkpoint().where(none), false)).saved.peak,
            200 * kState + on_tapes());
  // Beside 64 MiB in a file, memory holds two blocks, the blocks in transfer, and the tape's
  // arguments.
  EXPECT_LE(peaks(f(256, 1024, {}, Spill{.bytes_in_memory = 1})).saved.peak, 12 << 20);
}

// The loop does not know at its start how many elements the spilled lists of its iterations will
// have.
TEST_P(CheckpointMemoryTest, StepsThatAreLoopsInAFile) {
  const Tensor xs = full({60, 4, 32}, 0.1, f64), first = full({4, 32}, 0.5, f64);
  for (const int inner : {1, 5, 40}) {
    const auto f = [&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const auto next = [&](const Tensor&, const Tensor& h) { return tanh(matmul(h, w)); };
        return std::pair{None{}, fori_loop(0, inner, next, h + x)};
      };
      return sum(scan(Scan{.initial = first,
                           .xs = xs,
                           .body = body,
                           .swap_memory = Spill{.bytes_in_memory = 1}})
                     .state);
    };
    const KeptValues foretold = saved_values(f)(weights());
    EXPECT_FALSE(foretold.has_unknown()) << foretold;
    // Plus the residuals of the current iteration before they go to the file.
    EXPECT_LE(peaks(f).saved.peak, foretold.bytes_in_memory() + 2 * inner * kState + on_tapes());
  }
}

// Every iteration would save the same value. It is saved once for all of them, or recomputed in
// each.
TEST_P(CheckpointMemoryTest, ValuesOfWeightsAloneAreNoResidualOfEachIteration) {
  const auto keep = [](const StepValue&) { return Saving::keep; };
  const auto turned = [](const Tensor& w) { return transpose(matmul(w, w), {1, 0}); };
  const auto turned_again = [&](const Tensor& w) { return checkpoint(turned)(w); };
  const std::function<Tensor(const Tensor&)> makers[] = {turned, turned_again};
  for (const Checkpoint& policy :
       {Checkpoint(), Checkpoint::every(16), Checkpoint::budget(1 << 17), Checkpoint().where(keep)})
    for (const auto& make : makers) {
      SCOPED_TRACE(str(policy.steps(), ' ', policy.bytes(), ' ', policy.rule() != nullptr, ' ',
                       &make - makers));
      const auto loss = [&](bool in_steps) {
        return [&, in_steps](const Tensor& w) {
          const Tensor outside = make(w);
          const auto body = [&](const Tensor& x, const Tensor& h) {
            return std::pair{None{}, tanh(matmul(h, in_steps ? make(w) : outside) + x)};
          };
          return sum(scan(Scan{.initial = full({4, 32}, 0.5, f64),
                               .xs = full({64, 4, 32}, 0.1, f64),
                               .body = body,
                               .checkpoint = policy})
                         .state);
        };
      };
      const bool is_taped = GetParam() == RunMode::eager && policy.keeps_all();
      if (is_taped) continue;  // a tape keeps the values of each iteration
      const std::int64_t of_weights = 3 * 32 * 32 * 8;
      EXPECT_LE(peaks(loss(true)).saved.peak, peaks(loss(false)).saved.peak + of_weights);
    }
}

TEST(SavedValuesTest, UnreadLastStateIsNoResidual) {
  const Dim time("time", 64), batch("batch", 4), h("h", 32), to("to", 32);
  const auto f = [&](const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& s) {
      const Tensor next = tanh(rename(matmul(s, w, h), to, h) + x);
      return std::pair{next, next};
    };
    return sum(square(scan(Scan{.spatial_dim = time,
                                .initial = full({batch, h}, 0.5, f64),
                                .xs = full({time, batch, h}, 0.1, f64),
                                .body = body})
                          .ys));
  };
  // The state before each iteration, the iteration's result, and the number of iterations.
  EXPECT_EQ(saved_values(f)(full({h, to}, 0.01, f64)).bytes(), 2 * 64 * kState + 4);
}

// A rule that spills selects residuals of the iterations; recomputed iterations stay in memory.
TEST_P(CheckpointMemoryTest, RulesSpillNoResidualsOfRecomputedIterations) {
  for (const Checkpoint& policy : {Checkpoint::every(16), Checkpoint::budget(1 << 17)}) {
    const auto under = [&](Saving all) {
      return rnn(64, policy.where([all](const StepValue&) { return all; }));
    };
    const auto kept = under(Saving::keep), spilled = under(Saving::spill);
    for (const KeptValue& value : saved_values(spilled)(weights()).values)
      EXPECT_FALSE(value.is_spilled) << value.op;
    const Memory in_memory = peaks(kept), most = peaks(spilled);
    EXPECT_EQ(most.saved.peak, in_memory.saved.peak);
    EXPECT_EQ(most.saved.peak, saved_values(spilled)(weights()).loops.at(0).bytes + on_tapes());
    EXPECT_EQ(most.checkpoints.peak, in_memory.checkpoints.peak);
    expect_same_bits(grad(spilled)(weights()), grad(kept)(weights()));
  }
  const auto rule = [](const StepValue&) { return Saving::spill; };
  const KeptValues all = saved_values(rnn(64, Checkpoint().where(rule)))(weights());
  EXPECT_TRUE(std::any_of(all.values.begin(), all.values.end(), [](const KeptValue& value) {
    return value.is_spilled;
  })) << all;
}

// A loop saves the checkpoints of an inner loop; they count as checkpoints, too.
TEST(NestedCheckpointMemoryTest, CheckpointsOfALoopInsideAreCheckpoints) {
  constexpr int kOuter = 5, kInner = 6, kEvery = 2;
  const Tensor x = full({kOuter, 4, 32}, 0.1, f64), first = full({4, 32}, 0.5, f64);
  const auto f = [&](const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const auto step = [&](const Tensor&, const Tensor& s) {
        return std::pair{None{}, tanh(matmul(s, w) + x)};
      };
      return std::pair{None{}, scan(Scan{.initial = h * x,
                                         .xs = ones({kInner}, f64),
                                         .body = step,
                                         .checkpoint = Checkpoint::every(kEvery)})
                                   .state};
    };
    return sum(scan(Scan{.initial = first, .xs = x, .body = body}).state);
  };
  constexpr std::int64_t kCheckpoints = kOuter * (kInner / kEvery) * (kState + kWhich);
  for (const Executor executor : {Executor::interpreter, Executor::plan}) {
    const auto gradient = jit(grad(f), {.executor = executor});
    const Tensor w = weights();
    gradient(w);
    const Memory most = peaks_of([&] { gradient(w); });
    EXPECT_EQ(most.checkpoints.peak, kCheckpoints);
    // The states of the outer loop's iterations, and the residuals of the inner segment that was
    // recomputed last. A plan's gradient reads a chunk at a time; here one chunk is a whole inner
    // loop.
    const std::int64_t chunk = executor == Executor::plan ? kInner * kSaved : 0;
    EXPECT_LE(most.saved.peak, kOuter * (kState + 64) + kEvery * kSaved + chunk);
  }
}

}  // namespace
}  // namespace reel
