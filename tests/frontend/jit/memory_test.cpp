// memory(): bytes by class, compared with known sizes.
#include "reel/core/runtime/memory.h"

#include <atomic>
#include <thread>

#include "reel/core/base/quantities.h"
#include "reel/tests/modes.h"
#include "reel/tests/peaks.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

constexpr std::int64_t kSteps = 64, kRows = 4, kUnits = 32;
constexpr std::int64_t kState = kRows * kUnits * 8;  ///< bytes of a state in f64

struct Rnn {
  Checkpoint policy = {};
  SwapMemory swaps = {};

  Tensor operator()(const Tensor& x, const Tensor& w) const {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(h, w) + x);
      return std::pair{None{}, next};
    };
    return sum(scan(Scan{.initial = zeros({kRows, kUnits}, f64),
                         .xs = x,
                         .body = body,
                         .checkpoint = policy,
                         .swap_memory = swaps})
                   .state);
  }
};
/// Returns the bytes of the residuals of all iterations, without the number of iterations, which
/// belongs to no loop.
std::int64_t foretold_bytes(const Tensor& x, const Tensor& w) {
  std::int64_t result = 0;
  for (const KeptValue& value : saved_values(Rnn())(x, w).values)
    if (value.type.rank()) result += value.bytes;
  return result;
}
Tensor steps_of(std::int64_t count) { return full({count, kRows, kUnits}, 0.1, f64); }
Tensor weights() { return full({kUnits, kUnits}, 0.01, f64); }

TEST(MemoryTest, TensorsCountWithTheirElementsWhileTheyAreThere) {
  const std::int64_t before = memory().values.current;
  {
    const Tensor x = zeros({1000}, f64);
    EXPECT_EQ(memory().values.current - before, 8000);
    const Tensor part = slice(x, 0, 10, 20), same = reshape(x, {10, 100});
    EXPECT_EQ(memory().values.current - before, 8000) << "views have no data of their own";
  }
  EXPECT_EQ(memory().values.current, before);
  const Memory most = peaks_of([] {
    const Tensor x = ones({1000}, f64);
    { const Tensor y = x + 1.; }
    const Tensor z = x + 2.;
  });
  EXPECT_EQ(most.values.peak, 16000 + 8) << "2. is a tensor too";
  EXPECT_EQ(most.all.peak, 16000 + 8);
}

TEST(MemoryTest, ResidualsOfATapeCountUntilItIsDestroyed) {
  const Tensor x = full({1000}, 0.5, f64);
  const Memory before = memory();
  std::optional<Tensor> result;
  {
    Tape tape;
    tape.watch(x);
    result = tanh(x);               // its gradient reads the result
    const Tensor y = sin(*result);  // this saves its operand, which is saved already
    EXPECT_EQ(memory().saved.current - before.saved.current, 8000);
    EXPECT_EQ(memory().values.current - before.values.current, 8000);  // y
  }
  EXPECT_EQ(memory().saved.current, before.saved.current);
  EXPECT_EQ(memory().values.current - before.values.current, 8000) << "the result is still there";
}

TEST(MemoryTest, ResidualsOfALoopHaveThePredictedBytes) {
  const Rnn loss;
  const Tensor x = steps_of(kSteps), w = weights();
  const std::int64_t foretold = foretold_bytes(x, w);
  EXPECT_EQ(foretold, 2 * kSteps * kState) << "the state before a step, and tanh's result";
  const auto gradient = [&](Tensor w) { return grad([&](Tensor w) { return loss(x, w); })(w); };
  for (const Executor executor : {Executor::interpreter, Executor::plan}) {
    const auto traced = jit(gradient, {.executor = executor});
    EXPECT_EQ(peaks_of([&] { traced(w); }).saved.peak, foretold);
    EXPECT_EQ(peaks_of([&] { traced(w); }).saved.peak, foretold);
    if (executor == Executor::interpreter) continue;
    const std::string told = bytes_text(foretold) + " of them residuals";
    EXPECT_NE(traced.explain().find(told), std::string::npos) << traced.explain();
  }
  EXPECT_EQ(memory().saved.current, 0);
}

TEST(MemoryTest, APlansMemoryIsCountedOnceAndHeldForTheNext) {
  // A new thread has no buffers that other plans have returned.
  std::thread([] {
    const auto f = jit([](Tensor x) { return sum(matmul(tanh(x), transpose(tanh(x), {1, 0}))); });
    const Tensor x = ones({64, 64}, f64);
    const Memory before = memory();
    f(x);
    EXPECT_GE(memory().buffers.current - before.buffers.current, 64 * 64 * 8);
    EXPECT_LE(memory().buffers.current - before.buffers.current, 4 * 64 * 64 * 8);
    const std::int64_t held = memory().buffers.current;
    f(x);
    jit([](Tensor x) { return sum(matmul(cos(x), transpose(cos(x), {1, 0}))); })(x);
    EXPECT_EQ(memory().buffers.current, held);
  }).join();
}

class PolicyMemoryTest : public InEveryMode {};

TEST_P(PolicyMemoryTest, CheckpointsAtIntervalsBoundTheMemory) {
  const std::int64_t every = 256, steps = 8 * every;  // several chunks of a plan
  const Rnn loss{Checkpoint::every(every)};
  const Tensor x = steps_of(steps), w = weights();
  const auto gradient =
      run([&](Tensor w) { return grad([&](Tensor w) { return loss(x, w); })(w); });
  gradient(w);
  const Memory most = peaks_of([&] { gradient(w); });
  // A checkpoint holds the state and its iteration's number, which takes two numbers.
  const std::int64_t checkpoint = kState + 16;
  // The first state existed before, unless a plan has copied it.
  EXPECT_GE(most.checkpoints.peak, steps / every * checkpoint - kState);
  EXPECT_LE(most.checkpoints.peak, (steps / every + 1) * checkpoint);
  const std::int64_t of_step = foretold_bytes(x, w) / steps;
  EXPECT_GE(most.saved.peak, every * of_step);
  EXPECT_LE(most.saved.peak, 2 * every * of_step);
  EXPECT_EQ(memory().saved.current, 0);
  EXPECT_EQ(memory().checkpoints.current, 0);
}

TEST_P(PolicyMemoryTest, MemoryStaysWithinTheBudget) {
  for (const std::int64_t budget : {1 << 20, 3 << 20}) {
    const Rnn loss{Checkpoint::budget(budget)};
    const Tensor x = steps_of(4000), w = weights();
    const auto gradient =
        run([&](Tensor w) { return grad([&](Tensor w) { return loss(x, w); })(w); });
    const Memory most = peaks_of([&] { gradient(w); });
    EXPECT_GT(most.checkpoints.peak, 0);
    EXPECT_GT(most.saved.peak, 0);
    EXPECT_LE(most.checkpoints.peak + most.saved.peak, budget);
  }
}

TEST_P(PolicyMemoryTest, SmallAndGrowingStatesStayWithinTheBudget) {
  const std::int64_t budget = 60000;
  const auto small = [&](const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, sin(h * w + x)};
    };
    return scan(Scan{.initial = w,
                     .xs = ones({1500}, f64),
                     .body = body,
                     .checkpoint = Checkpoint::budget(budget)})
        .state;
  };
  // From 1 to 400 numbers: 3,200 bytes.
  const auto growing = [&](const Tensor& w) {
    const auto body = [&](const Tensor& s) { return concat({s * 0.9, reshape(sin(w), {1})}, 0); };
    return sum(while_loop(
        [](const Tensor& s) { return less(cast(sum(s * 0 + 1), i32), 400); }, body, reshape(w, {1}),
        {.shape_invariants = {PartialShape{unknown}}, .checkpoint = Checkpoint::budget(budget)}));
  };
  const auto hold = [&](auto f, std::int64_t least) {
    const auto gradient = run(grad(f));
    gradient(scalar(0.5, f64));
    const Memory most = peaks_of([&] { gradient(scalar(0.5, f64)); });
    EXPECT_GT(most.checkpoints.peak, 0);
    EXPECT_LE(most.checkpoints.peak, budget / 2 + least);
    EXPECT_LE(most.saved.peak, budget / 2 + least);
  };
  hold(small, 64);
  hold(growing, 3200);
}

TEST_P(PolicyMemoryTest, RaggedLoopsStayWithinTheBudget) {
  const Dim batch("batch", 8), unit("unit", 64);
  std::vector<int> lengths;
  for (int b = 0; b < 8; ++b) lengths.push_back(600 - 50 * b);
  const Dim time("time", tensor(lengths, {batch}));
  const Tensor x = ones({time, batch}, f64), w = full({unit}, 0.5, f64);
  constexpr std::int64_t kStep = 8 * 64 * 8;
  // A plan holds at least two chunks of iterations in memory.
  const std::int64_t unit_steps = GetParam() == RunMode::plan ? 10 : 1;
  for (const std::int64_t budget : {400'000 * unit_steps, 1'000'000 * unit_steps}) {
    const auto gradient = run(grad([&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = tanh(h * w + x);
        return std::pair{None{}, next * sin(h)};
      };
      return sum(scan(Scan{.spatial_dim = time,
                           .initial = zeros({batch, unit}, f64),
                           .xs = x,
                           .body = body,
                           .checkpoint = Checkpoint::budget(budget)})
                     .state);
    }));
    gradient(w);
    const Memory most = peaks_of([&] { gradient(w); });
    EXPECT_LE(most.checkpoints.peak, budget / 2 + 2 * kStep);
    // An iteration saves three values.
    EXPECT_LE(most.saved.peak, budget / 2 + 3 * 3 * kStep) << budget;
  }
}

TEST_P(PolicyMemoryTest, SpilledResidualsTakeOnlyTheirWindowOfMemory) {
  const std::int64_t window = 4 << 20, steps = 20000;
  const Rnn loss{{}, Spill{.bytes_in_memory = window}};
  const Tensor x = steps_of(steps), w = weights();
  const auto gradient =
      run([&](Tensor w) { return grad([&](Tensor w) { return loss(x, w); })(w); });
  const Memory most = peaks_of([&] { gradient(w); });
  EXPECT_GT(most.saved.peak, 0);
  // The window; for each value two blocks in writing and one that is read ahead; and a chunk of
  // steps that runs. If the disk is slow, all are there at once.
  EXPECT_LE(most.saved.peak, window + 2 * 3 * (1 << 20) + (1 << 19));
  EXPECT_LT(most.saved.peak, foretold_bytes(x, w) / 3);
  // saved_values predicts this. For plans explain() does: see PlanMemoryTest.
  const KeptValues foretold = saved_values(loss)(x, w);
  if (GetParam() != RunMode::plan && GetParam() != RunMode::chunks) {
    EXPECT_LE(most.saved.peak, foretold.bytes_in_memory() + 2 * kState);  // a tape holds more
  }
  EXPECT_GE(most.saved.peak, foretold.bytes_in_memory() / 2);
  EXPECT_EQ(foretold.bytes_in_files(), foretold_bytes(x, w));
}

class PlanMemoryTest : public ::testing::Test {
 protected:
  static std::int64_t number_behind(const std::string& text, const std::string& words) {
    const std::size_t at = text.find(words);
    EXPECT_NE(at, std::string::npos) << words << " is not in\n" << text;
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + words.size()));
  }
};

// A chunked plan holds recomputed iterations in memory as whole chunks.
TEST_F(PlanMemoryTest, ChunksUnderEachPolicy) {
  const Tensor x = steps_of(4000), w = weights();
  const std::int64_t of_step = 2 * kState;
  const auto peaks = [&](const Rnn& loss, std::string* text = nullptr) {
    const auto gradient =
        jit([&](Tensor w) { return grad([&](Tensor w) { return loss(x, w); })(w); });
    gradient(w);
    const Memory most = peaks_of([&] { gradient(w); });
    if (text) *text = gradient.explain();
    return most;
  };
  std::string text;
  EXPECT_EQ(peaks({}, &text).saved.peak, 4000 * of_step);
  const std::int64_t chunk = number_behind(text, " chunks of ");
  for (const std::int64_t every : {std::int64_t{16}, chunk, 4 * chunk, 4 * chunk + 3}) {
    SCOPED_TRACE(str("every ", every));
    const Memory most = peaks({Checkpoint::every(every)}, &text);
    EXPECT_EQ(most.saved.peak, number_behind(text, "recomputed: ") * of_step);
    if (every % chunk == 0) {
      EXPECT_EQ(most.saved.peak, every * of_step);
    }
    EXPECT_LE(most.saved.peak, (every + chunk) * of_step);
    const std::int64_t gap = std::max(every, chunk);
    EXPECT_EQ(most.checkpoints.peak, (4000 + gap - 1) / gap * (kState + 16));
  }
  for (const std::int64_t budget : {1 << 16, 1 << 18, 1 << 20, 4 << 20}) {
    SCOPED_TRACE(str("budget ", budget));
    const Memory most = peaks({Checkpoint::budget(budget)}, &text);
    EXPECT_EQ(most.saved.peak, number_behind(text, "recomputed: ") * of_step);
    EXPECT_LE(most.saved.peak, std::max<std::int64_t>(budget / 2, chunk * of_step));
  }
}

// The loop runs step by step or in chunks of its own. The residuals that its gradient requests at a
// time must be in memory once, even if they come from several runs.
TEST_F(PlanMemoryTest, OtherChunksThanThoseOfTheGradient) {
  struct Problem {
    LstmCell cell;
    Tensor x;
  };
  const auto at = [](int in, int units, int rows, int steps) {
    const Dim time("time", steps), batch("batch", rows), features("in", in);
    return Problem{LstmCell::init(features, Dim("hidden", units)),
                   random_normal({time, batch, features})};
  };
  for (const bool reverse : {false, true})
    for (const Problem& problem : {at(4, 256, 4, 400), at(4, 256, 4, 130)})
      for (const Checkpoint& policy : {Checkpoint::every(8), Checkpoint::every(200),
                                       Checkpoint::budget(1 << 20), Checkpoint::budget(32 << 20)}) {
        SCOPED_TRACE(str(problem.x.type(), ", every ", policy.steps(), ", budget ", policy.bytes(),
                         reverse ? ", reverse" : ""));
        const auto loss = [&](const Checkpoint& policy) {
          return [&, policy](const Problem& at) {
            return sum(
                recur(at.cell, at.x, at.x.dim("time"), {.reverse = reverse, .checkpoint = policy})
                    .outputs);
          };
        };
        const auto gradient = jit(grad(loss(policy))), all = jit(grad(loss({})));
        const Problem kept = all(problem);
        Problem made = gradient(problem);
        expect_same_bits(made.cell.recurrent_weight, kept.cell.recurrent_weight);
        const Memory most = peaks_of([&] { gradient(problem); });
        const std::string text = gradient.explain();
        const std::int64_t of_step =
            saved_values(loss(Checkpoint::every(1)))(problem).loops.at(0).bytes;
        const std::int64_t steps = most.saved.peak / of_step;
        EXPECT_EQ(steps, number_behind(text, "recomputed: "));
        // One chunk of the gradient, and one chunk of the loop or the segment between two
        // checkpoints.
        const std::string of = " chunks of ";
        const std::int64_t unit = number_behind(text, of), all_steps = problem.x.type().sizes()[0],
                           asked = text.find(of) == text.rfind(of)
                                       ? all_steps
                                       : number_behind(text.substr(text.rfind(of)), of),
                           run = (policy.steps() + unit - 1) / unit * unit,
                           fit = policy.bytes() / 2 / of_step;
        EXPECT_LE(steps, std::max(asked, fit) + std::max(unit, run));
      }
}

// The gradient of an outer iteration needs the inner loop's residuals for a chunk of inner
// iterations. The larger they are, the smaller is the chunk.
TEST_F(PlanMemoryTest, RecomputedIterationsAroundALoopTakeLittleMemory) {
  const Tensor w = random_normal({16, 16}) * 0.1f, x = random_normal({30, 4, 16});
  const auto run = [&](const Checkpoint& policy) {
    const auto gradient = jit(grad([&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const auto inner = [&](const Tensor&, const Tensor& z) { return tanh(matmul(z, w) + x); };
        return std::pair{None{}, fori_loop(0, 6000, inner, h)};
      };
      return sum(
          scan(Scan{.initial = zeros({4, 16}), .xs = x, .body = body, .checkpoint = policy}).state);
    }));
    Tensor result;
    const std::int64_t peak = peaks_of([&] { result = gradient(w); }).all.peak;
    return std::pair{result, peak};
  };
  const auto rule = [](const StepValue&) { return Saving::recompute; };
  const auto [kept, most] = run({});
  for (const Checkpoint& policy : {Checkpoint().where(rule), Checkpoint::every(1).where(rule),
                                   Checkpoint::budget(50'000).where(rule)}) {
    const auto [made, peak] = run(policy);
    expect_same_bits(made, kept);
    EXPECT_LT(peak, most / 5);
  }
}

// A block holds several iterations of a value, and the gradient requests a chunk of them as one
// buffer.
TEST_F(PlanMemoryTest, SpilledChunksTakeThePredictedMemory) {
  const Tensor x = full({600, 16, 256}, 0.1f), first = zeros({16, 256}),
               w = full({256, 256}, 0.01f);
  for (const std::int64_t window : {1 << 20, 8 << 20, 1 << 30}) {
    SCOPED_TRACE(bytes_text(window));
    const auto gradient = jit(grad([&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(matmul(h, w) + x)};
      };
      return sum(scan(Scan{.initial = first,
                           .xs = x,
                           .body = body,
                           .swap_memory = Spill{.bytes_in_memory = window}})
                     .state);
    }));
    const Memory most = peaks_of([&] { gradient(w); });
    const std::string text = gradient.explain();
    const std::int64_t foretold = number_behind(text, "with transfers at most ");
    EXPECT_LE(most.saved.peak, (foretold + 1) << 20);
    EXPECT_GE(most.saved.peak, foretold << 19);
  }
}

TEST_F(PlanMemoryTest, BuffersAreThoseThatExplainTells) {
  // A new thread has no buffers that other plans have returned.
  std::thread([] {
    const std::int64_t before = memory().buffers.current;
    const auto f = jit([](Tensor x) {
      const Tensor y = matmul(tanh(x), transpose(exp(x), {1, 0}));
      return sum(matmul(y, sin(x)));
    });
    const Tensor x = full({64, 64}, .5, f64);
    f(x);
    const std::string text = f.explain();
    const std::int64_t held = memory().buffers.current - before;
    EXPECT_EQ(peaks_of([&] { f(x); }).buffers.peak, 0) << "they are held for the next call";
    const std::string told = ", in " + bytes_text(held) + " of memory";
    EXPECT_NE(text.find(told), std::string::npos) << told << " is not in\n" << text;
  }).join();
}

REEL_IN_EVERY_MODE(PolicyMemoryTest);
TEST(MemoryTest, TensorsThatAnOptimiserUpdatesCountAsParameters) {
  const Memory before = memory();
  {
    Tensor w = ones({1000}, f32);
    Adam adam(w);
    EXPECT_EQ(memory().parameters.current - before.parameters.current, 2 * 4000)
        << "both moments are the same zeros";
    adam.update(w, ones({1000}, f32));
    EXPECT_EQ(memory().parameters.current - before.parameters.current, 3 * 4000);
    const auto step = jit([](std::pair<Tensor, Adam<Tensor>> s, Tensor g) {
      s.second.update(s.first, g);
      return s;
    });
    std::pair<Tensor, Adam<Tensor>> state{w, adam};
    const Memory most = peaks_of([&] {
      for (int i = 0; i < 3; ++i) state = step(std::move(state), ones({1000}, f32));
    });
    EXPECT_EQ(memory().parameters.current - before.parameters.current, 2 * 3 * 4000);
    EXPECT_LE(most.parameters.peak, 2 * 3 * 4000);
  }
  EXPECT_EQ(memory().parameters.current, before.parameters.current);
}

TEST(MemoryTest, OtherThreadsAreCountedUpToLittle) {
  const Memory before = memory();
  std::vector<Tensor> kept(4);
  std::vector<std::thread> threads;
  for (Tensor& of : kept) threads.emplace_back([&of] { of = zeros({1 << 20}, f32); });
  for (std::thread& thread : threads) thread.join();
  const std::int64_t all = memory().values.current - before.values.current;
  EXPECT_NEAR(static_cast<double>(all), 4. * (4 << 20), 4. * (64 << 10));
  kept.clear();
  EXPECT_NEAR(static_cast<double>(memory().values.current - before.values.current), 0,
              4. * (64 << 10));
}

TEST(MemoryTest, SmallTensorsOfAnotherThreadAreCounted) {
  const Memory before = memory();
  std::atomic<bool> is_made{false}, is_read{false};
  std::thread thread([&] {
    Tape tape;
    Tensor y = full({512}, .5, f64);
    tape.watch(y);
    for (int i = 0; i < 1000; ++i) y = tanh(y);
    is_made = true;
    while (!is_read) std::this_thread::yield();
  });
  while (!is_made) std::this_thread::yield();
  const Memory now = memory();
  is_read = true;
  thread.join();
  EXPECT_NEAR(static_cast<double>(now.saved.current - before.saved.current), 1000. * 4096, 66e3);
  EXPECT_NEAR(static_cast<double>(now.all.current - before.all.current), 1000. * 4096, 66e3);
}

TEST(MemoryTest, TensorsFreedByAnotherThreadAreCounted) {
  const std::int64_t before = memory().values.current;
  for (int i = 0; i < 300; ++i) {
    Tensor made;
    std::thread([&] { made = zeros({500}, f64); }).join();
  }
  EXPECT_NEAR(static_cast<double>(memory().values.current - before), 0, 66e3);
}

TEST_P(PolicyMemoryTest, ArgumentsOfALoopCountAsBeforeItsGradient) {
  const Tensor first = full({kRows, kUnits}, 0.5, f64), x = steps_of(8), w = weights();
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(2)}) {
    const Memory before = memory();
    const auto loss = [&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(matmul(h, w) + x)};
      };
      return sum(scan(Scan{.initial = first, .xs = x, .body = body, .checkpoint = policy}).state);
    };
    run(grad(loss))(w);
    EXPECT_EQ(memory().checkpoints.current, before.checkpoints.current);
    EXPECT_EQ(memory().saved.current, before.saved.current);
  }
}

TEST(MemoryTest, MemoryIsPrintedByClass) {
  const Memory told{{0, 2048}, {1, 1}, {}, {}, {}, {1 << 20, 3 << 20}};
  EXPECT_EQ(str(told),
            "values: 0 B, at most 2.0 KiB\n"
            "saved: 1 B, at most 1 B\n"
            "checkpoints: 0 B, at most 0 B\n"
            "buffers: 0 B, at most 0 B\n"
            "parameters: 0 B, at most 0 B\n"
            "all: 1.0 MiB, at most 3.0 MiB\n");
}

}  // namespace
}  // namespace reel
