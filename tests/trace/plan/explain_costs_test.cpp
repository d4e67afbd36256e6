// explain()'s figures of bytes and times: memory of values, residuals saved for gradients,
// profiles.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <regex>
#include <sstream>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/explained.h"
#include "reel/trace/executors/plan/loop/loop_work.h"
#include "reel/trace/passes/fusion/fuse_pointwise.h"

namespace reel {
namespace {

/// Returns the work of an iteration with this graph as body.
LoopWork work(const Graph& body) {
  return work_of(body, plan_types(body, body.types_of(body.inputs), {}));
}
template <class F>
LoopWork work(const F& f, const Tensor& x) {
  const auto traced = jit(f);
  traced(x);
  return work(traced.graph());
}

TEST(LoopWorkTest, ElementsCountByTheTimeOfTheirOp) {
  using T = const Tensor&;
  const Tensor x = ones({6, 10});
  EXPECT_EQ(work([](T x) { return x * x + x; }, x).elements, 8 * 60);
  EXPECT_EQ(work([](T x) { return exp(x); }, x).elements, 16 * 60);
  EXPECT_EQ(work([](T x) { return softmax(x, -1); }, x).elements, 64 * 60);
  EXPECT_EQ(work([](T x) { return sum(x, -1); }, x).elements, 4 * 60) << "of the operand";
  EXPECT_EQ(work([](T x) { return matmul(x, transpose(x, {1, 0})); }, x).products, 6 * 6 * 10);
}

TEST(LoopWorkTest, FusedOpsCountAsTheirOpsAndRecomputedOnesNotAtAll) {
  const auto traced = jit([](const Tensor& x) { return exp(x * x) + x; });
  traced(ones({6, 10}));
  const Graph& graph = traced.graph();
  EXPECT_EQ(work(graph).elements, (4 + 16 + 4) * 60);
  const Ref<Graph> fused = fuse_pointwise(graph);
  ASSERT_EQ(fused->records.size(), 1u);
  EXPECT_EQ(work(*fused).elements, (4 + 16 + 4) * 60);
  const Ref<Graph> recomputed(new Graph(graph));
  recomputed->records[1].recompute = Recompute::yes;
  EXPECT_EQ(work(*recomputed).elements, (4 + 4) * 60);
}

using ExplainCostsTest = ExplainTest;

TEST_F(ExplainCostsTest, ResidualsAreStacksThatOnlyTheGradientReads) {
  const auto next = [](const Tensor& x, const Tensor& h, const Tensor& w) {
    return tanh(h * w + x);
  };
  const auto of_all = [&](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{next(x, h, w), next(x, h, w)};
    };
    return sum(scan(Scan{.initial = ones({3}), .xs = x, .body = body}).ys);
  };
  const auto of_last = [&](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, next(x, h, w)};
    };
    return sum(scan(Scan{.initial = ones({3}), .xs = x, .body = body}).state);
  };
  const std::string all = explained(value_and_grad(of_all), ones({5, 3}), ones({3}));
  const std::string last = explained(value_and_grad(of_last), ones({5, 3}), ones({3}));
  EXPECT_EQ(line_with(all, "residuals: "), "");
  EXPECT_EQ(line_with(last, "residuals: "),
            "residuals: 1 stack, 12 B per iteration, 60 B in all: f32[5,3]");
  // Each of these has two loops: the stacks are the results of one and the cotangents of the other.
  EXPECT_EQ(line_with(all, "of which stacks"),
            "of which stacks of loops: 120 B, 0 B of them residuals");
  EXPECT_EQ(line_with(last, "of which stacks"),
            "of which stacks of loops: 120 B, 60 B of them residuals");
}

TEST_F(ExplainCostsTest, BytesOfEachClass) {
  // Weights of 4 · 6 and 6 · 6 numbers, and three steps of two rows.
  struct Weights {
    Tensor in, recurrent;
  };
  const auto f = [](const Tensor& x, const Weights& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(matmul(x, w.in) + matmul(h, w.recurrent));
      return std::pair{y, y};
    };
    return scan(Scan{.initial = zeros({2, 6}), .xs = x, .body = body}).ys;
  };
  const std::string text = explained(f, ones({3, 2, 4}), Weights{ones({4, 6}), ones({6, 6})});
  // Arguments: x with 3 · 2 · 4 numbers, and the weights. Constants: the state with 2 · 6 numbers,
  // and 8 bytes of a loop index. Values: x·W of all steps, the packed copy of the weights, the last
  // state, and 4 bytes of a step count. Inside the loop: h·U.
  // Carries: two buffers of 48 bytes, which take 64 each.
  for (const char* sentence :
       {"  arguments that are read: 336 B\n", "  captures: 0 B\n", "  constants: 56 B\n",
        "  values: 340 B, in 512 B of memory", "  values with their own allocation: 0 B\n",
        "  of which stacks of loops: 144 B, 0 B of them residuals",
        "  carries of loops, two buffers each, and sums: 128 B\n", "  values inside loops: 64 B\n",
        "  results: 144 B\n"})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
}

TEST_F(ExplainCostsTest, TellsCheckpointsAndResidualsOfAPolicy) {
  const auto explain = [&](const Checkpoint& policy, const SwapMemory& swaps) {
    const auto f = [&](Tensor w) {
      const auto body = [&](Tensor x, Tensor h) {
        return std::pair{None{}, tanh(matmul(h, w) + x)};
      };
      return sum(scan(Scan{.initial = zeros({2, 3}),
                           .xs = ones({40, 2, 3}),
                           .body = body,
                           .checkpoint = policy,
                           .swap_memory = swaps})
                     .state);
    };
    return explained([f](Tensor w) { return grad(f)(w); }, ones({3, 3}));
  };
  const std::string every = explain(Checkpoint::every(8), false);
  EXPECT_EQ(
      line_with(every, "checkpoints: "),
      "checkpoints: f32[2,3], before every 8 iterations; the gradient recomputes the iterations "
      "between them");
  EXPECT_TRUE(has(every, "not saved: recomputed, or read from the file")) << every;
  // Both loops run all 40 iterations as one chunk.
  EXPECT_EQ(
      line_with(every, "recomputed: "),
      "recomputed: 40 iterations in memory at a time, 1.9 KiB; each iteration runs 2.0 times");
  EXPECT_FALSE(has(every, "residuals: ")) << every;
  EXPECT_FALSE(has(every, "in a file")) << every;
  EXPECT_EQ(line_with(explain(Checkpoint::budget(1 << 20), false), "checkpoints: "),
            "checkpoints: f32[2,3], as many as fit into half of 1.0 MiB; the gradient recomputes "
            "the iterations "
            "between them");
  const std::string in_file = explain({}, Spill{.bytes_in_memory = 3 << 20});
  // Two residuals of 40 iterations, 24 bytes each, never fill a block.
  EXPECT_EQ(line_with(in_file, "in a file: "),
            "in a file: residuals and checkpoints except 3.0 MiB, in memory with transfers at most "
            "1.9 KiB")
      << in_file;
  // A file's window is larger than the budget.
  EXPECT_EQ(
      line_with(explain(Checkpoint::budget(1 << 20), Spill{.bytes_in_memory = 1}), "in a file: "),
      "in a file: nothing, the checkpoints of this budget are smaller than a file's window");
  // The budget holds one state, and one chunk of the gradient's four; earlier chunks run again.
  const auto long_loop = explained(grad([](Tensor w) {
                                     const auto body = [&](Tensor x, Tensor h) {
                                       return std::pair{None{}, tanh(matmul(h, w) + x)};
                                     };
                                     return sum(scan(Scan{.initial = zeros({4, 32}, f64),
                                                          .xs = full({200, 4, 32}, 0.1, f64),
                                                          .body = body,
                                                          .checkpoint = Checkpoint::budget(1)})
                                                    .state);
                                   }),
                                   full({32, 32}, 0.01, f64));
  EXPECT_EQ(
      line_with(long_loop, "recomputed: "),
      "recomputed: 50 iterations in memory at a time, 100 KiB; each iteration runs 3.5 times");
  EXPECT_FALSE(has(explain({}, false), "checkpoints: "));
}

TEST_F(ExplainCostsTest, RemarksTellWhereSwapMemoryHasNoEffect) {
  const auto inner = [](Tensor w, const SwapMemory& swaps) {
    return [w, swaps](Tensor h) {
      return fori_loop(0, 4, [&](Tensor, Tensor h) { return tanh(matmul(h, w)); }, h,
                       {.swap_memory = swaps, .name = "inner"});
    };
  };
  const auto in_loop = [&](const SwapMemory& outer, const SwapMemory& swaps) {
    const auto f = [=](Tensor w) {
      const auto step = inner(w, swaps);
      return sum(fori_loop(0, 5, [&](Tensor, Tensor h) { return step(h); }, ones({3, 3}),
                           {.swap_memory = outer}));
    };
    return explained([f](Tensor w) { return grad(f)(w); }, ones({3, 3}));
  };
  const std::string nothing =
      "in a file: its own swap_memory is ignored: it is in another loop or in a branch, and its "
      "residuals are in a file if the outermost loop swaps";
  EXPECT_EQ(line_with(in_loop(false, true), "in a file: "), nothing);
  EXPECT_TRUE(has(in_loop(true, true), "in a file: residuals and checkpoints except"));
  EXPECT_TRUE(has(in_loop(true, true), nothing));
  EXPECT_FALSE(has(in_loop(true, false), nothing));
  const auto in_branch = [&](Tensor w) {
    return sum(cond(
        sum(w) > 0.0f, [&] { return inner(w, true)(w); }, [&] { return w; }));
  };
  const std::string text = explained([&](Tensor w) { return grad(in_branch)(w); }, ones({3, 3}));
  EXPECT_EQ(line_with(text, "in a file: "), nothing) << text;
}

TEST_F(ExplainCostsTest, RowsAndMemoryThatAreLeftAsTheyAre) {
  const Dim batch("batch", 16), in("in", 30), hidden("hidden", 70);
  const auto text_of = [&](const Dim& time, const Passes& passes) {
    const auto f = [](const LstmCell& cell, const Tensor& x) {
      return sum(recur(cell, x, x.dim("time")).outputs);
    };
    const auto jitted = jit(grad(f), {.passes = passes});
    jitted(LstmCell::init(in, hidden), ones({time, batch, in}));
    return jitted.explain();
  };
  const Dim same("time", 4), ragged("time", tensor(std::vector<int>(16, 4), {batch}));
  EXPECT_TRUE(has(text_of(same, {}), "  cut: 2 blocks of 8 rows of batch=16"));
  EXPECT_TRUE(
      has(text_of(same, {.cut_rows = false}), "  not cut: the pass cut_rows is disabled\n"));
  EXPECT_TRUE(has(text_of(same, {.shrink_batch = false}), "  cut: 2 blocks of 8 rows of batch=16"));
  EXPECT_TRUE(has(text_of(same, {}), " of memory, shared by disjoint live ranges\n"));
  EXPECT_TRUE(has(text_of(same, {.reuse_memory = false}), " of memory, none shared\n"));
  EXPECT_TRUE(has(text_of(ragged, {}), ", grouped by length"));
  EXPECT_TRUE(has(text_of(ragged, {.shrink_batch = false}),
                  "  not cut: the pass shrink_batch is disabled\n"));
}

TEST_F(ExplainCostsTest, TimesArePredictedAndWithoutAProfileNotMeasured) {
  const auto [f, x] = small_scan();
  const std::string text = explained(f, x, ones({2, 3}));
  EXPECT_TRUE(has(text, "time: predicted "));
  EXPECT_TRUE(has(text, "rates: on one thread "));
  EXPECT_FALSE(has(text, "measured"));
}

TEST_F(ExplainCostsTest, AProfileCountsEveryStep) {
  const auto [f, x] = small_scan();
  const auto jitted = jit(f, {.profile = true});
  jitted(x, ones({2, 3}));
  EXPECT_TRUE(has(jitted.explain(), " a call, the first one, which plans the loops\n"));
  for (int i = 0; i < 4; ++i) jitted(x, ones({2, 3}));
  const std::string text = jitted.explain();
  EXPECT_TRUE(std::regex_search(
      text, std::regex("\ntime: predicted [1-9][0-9.]* [nu]s, measured [1-9][0-9.]* .?s a call, "
                       "the mean of 4\n  time: [1-9][0-9]* % scan \"scan\", 1 x [1-9]")))
      << text;
  EXPECT_TRUE(std::regex_search(
      text,
      std::regex("\n    time: [1-9][0-9]* % fused.2 ops. -> f32.2,3., 5 x [1-9][0-9.]* .?s\n")))
      << text;
}

/// Returns the shares of the lines of time with an indentation, in the text behind `from`.
std::vector<int> shares(const std::string& text, const std::string& from,
                        const std::string& indentation) {
  std::vector<int> result;
  std::istringstream lines(text.substr(text.find(from)));
  const std::regex share("^" + indentation + "time: ([0-9]+) % .*");
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, share))
      result.push_back(std::stoi(found[1]));
    else if (!result.empty())
      break;
  }
  return result;
}
int sum_of(const std::vector<int>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0);
}

TEST_F(ExplainCostsTest, LinesOfTimeAddUpToTheCall) {
  const auto jitted = jit(value_and_grad(loss), {.profile = true});
  for (int i = 0; i < 20; ++i) jitted(model, x);
  const std::string text = jitted.explain();
  EXPECT_NEAR(sum_of(shares(text, "\ntime: ", "  ")), 100, 5) << text;
}

TEST_F(ExplainCostsTest, LinesOfALoopAddUpToItsShareOfTheCall) {
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    const auto jitted = jit(value_and_grad(loss), {.profile = true});
    for (int i = 0; i < 20; ++i) jitted(model, x);
    const std::string text = jitted.explain();
    const std::vector<int> calls = shares(text, "\ntime: ", "  ");
    for (const char* const loop : {"\nloop 1", "\nloop 2"}) {
      const std::vector<int> rows = shares(text, loop, "    ");
      EXPECT_FALSE(rows.empty()) << text;
      EXPECT_LE(sum_of(rows), *std::max_element(calls.begin(), calls.end()) + 5) << text;
    }
  }
}

TEST_F(ExplainCostsTest, ATimeLineHasTheValuesOfFinishedEntries) {
  const Dim batch("batch", 8), in("in", 16);
  const Dim time("time", tensor({40, 1, 30, 20, 5, 6, 7, 40}, {batch}));
  const Tensor keys = random_normal({batch, Dim("keys", time.lengths()), in});
  const auto attend = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Dim dim = keys.dim("keys");
      const Tensor next = tanh(x + matmul(softmax(matmul(keys, h, in), dim), keys, dim));
      return std::pair{next, next};
    };
    return scan(Scan{.spatial_dim = time, .initial = zeros({batch, in}), .xs = x, .body = body}).ys;
  };
  const auto jitted =
      jit(attend, {.passes = {.cut_rows = false, .shrink_batch = false}, .profile = true});
  const Tensor x = random_normal({time, batch, in});
  for (int i = 0; i < 5; ++i) jitted(x);
  EXPECT_TRUE(has(jitted.explain(), " % the values that finished entries read and return\n"))
      << jitted.explain();
}

TEST_F(ExplainCostsTest, AProfileOfALoopThatIsCutAddsUpItsBlocks) {
  const auto jitted = jit(value_and_grad(loss), {.profile = true});
  for (int i = 0; i < 3; ++i) jitted(model, x);
  const std::string text = jitted.explain();
  EXPECT_TRUE(has(text,
                  "packed_dot(f32[batch=8,hidden=80], f32[hidden=80,gate=320]) -> "
                  "f32[batch=8,gate=320], 12 x "))
      << text;
}

TEST_F(ExplainCostsTest, ProfileCountsIterationsOfALoopOfUnknownLength) {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor& x) { return sum(x) < 100.; },
                      [](const Tensor& x) { return x * 2.; }, x);
  };
  const auto jitted = jit(f, {.profile = true});
  for (int i = 0; i < 3; ++i) jitted(ones({2}));
  const std::string text = jitted.explain();
  EXPECT_TRUE(has(text, "until its condition ends it (6 iterations a run, counted)")) << text;
  EXPECT_TRUE(has(text, "time: predicted"));
}

TEST_F(ExplainCostsTest, ResidualsOfUnknownLengthHaveUnknownBytes) {
  const auto f = [](const Tensor& w) {
    return sum(while_loop([](const Tensor& h) { return sum(h) < 3.f; },
                          [&](const Tensor& h) { return tanh(h) * w + 0.5f; }, zeros({3})));
  };
  const std::string text = explained(grad(f), ones({3}));
  EXPECT_TRUE(has(text, "an unknown number of bytes in all")) << text;
  EXPECT_FALSE(has(text, "0 B a step")) << text;
}

}  // namespace
}  // namespace reel
