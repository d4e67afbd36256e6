// explain()'s lines on loops: the transformations that were made, and the reasons against others.
#include <gtest/gtest.h>

#include <regex>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/explained.h"

namespace reel {
namespace {

TEST_F(ExplainTest, ATrainingStepReportsTheFateOfItsLoops) {
  const Threads two(2);
  const std::string text = explained(value_and_grad(loss), model, x);
  for (const char* sentence :
       {"jit \"jit\", recorded for 1 kind of arguments; as of the last call:\n",
        "loop 1: scan \"lstm\", 6 iterations, ", "  carries: 2 x f32[batch=16,hidden=80]\n",
        "  hoisted: dot(f32[time=6,batch=16,in=256], f32[in=256,gate=320]) -> "
        "f32[time=6,batch=16,gate=320], for all iterations at once\n",
        "  not moved: dot(f32[batch=16,hidden=80], f32[hidden=80,gate=320]) -> "
        "f32[batch=16,gate=320], loop-carried dependency\n",
        "  not moved: dot(f32[batch=16,hidden=80], f32[hidden=80,classes=10]) -> "
        "f32[batch=16,classes=10], not faster if batched: it has enough rows, and its "
        "matrix stays in the cache\n",
        "  packed: f32[hidden=80,gate=320], before the loop\n",
        "  not packed: f32[hidden=80,classes=10], the matrix is too small to gain from packing\n",
        "  fused: ", " ops in 1 tile program\n",
        "  residuals: ", "  cut: 2 blocks of 8 rows of batch=16, on 2 threads\n",
        "loop 2: the gradient of scan \"lstm\", 6 iterations, ",
        "  sunk: dot(f32[time=6,batch=16,hidden=80], f32[time=6,batch=16,gate=320]) -> "
        "f32[hidden=80,gate=320], for all iterations at once, summed over them\n"})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
}

TEST_F(ExplainTest, TheWholeTextOfASmallLoop) {
  const auto [f, x] = small_scan();
  const auto jitted = jit(f, {.name = "small"});
  jitted(x, ones({2, 3}));
  EXPECT_EQ(without_times(jitted.explain()),
            R"(jit "small", recorded for 1 kind of arguments; as of the last call:
1 instruction, without those in loops
bytes:
  arguments that are read: 144 B
  captures: 0 B
  constants: 8 B
  values: 28 B, in 128 B of memory, shared by disjoint live ranges
  values with their own allocation: 0 B
  of which stacks of loops: 120 B, 0 B of them residuals
  carries of loops, two buffers each, and sums: 128 B
  values inside loops: 0 B
  results: 120 B
not in place: argument 0, held by another reference; move it in
loop 1: scan "scan", 5 iterations, 1 instruction each
  carries: f32[2,3]
  slices: f32[5,2,3]
  stacks: f32[5,2,3]
  hoisted, sunk: none
  fused: 2 ops in 1 tile program
  series: one call of the tile program runs many iterations
  not cut: too little work: 600 multiplications in all iterations, or elements that take as long; 2097152 pay for row blocks
)");
}

TEST_F(ExplainTest, WhyALoopIsNotCut) {
  const Tensor x = random_normal({5, 16, 160}), w = random_normal({160, 160});
  const auto with = [&](auto next, const Tensor& x) {
    const auto f = [&](const Tensor& x, const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor y = next(matmul(h, w) + x);
        return std::pair{y, y};
      };
      const Dims dims(x.dims().begin() + 1, x.dims().end());
      return scan(Scan{.initial = zeros(dims), .xs = x, .body = body}).ys;
    };
    return line_with(explained(f, x, w), "not cut");
  };
  const auto plain = [](const Tensor& y) { return tanh(y); };
  EXPECT_EQ(with(plain, x), "");  // it is split
  EXPECT_EQ(with(plain, slice(x, 1, 0, 15)),
            "not cut: the rows, 15, are fewer than two blocks of 8");
  const Tensor other = tensor({15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(with([&](const Tensor& y) { return gather(y, other, 0); }, x),
            "not cut: op gather may mix the rows, 16");
  EXPECT_EQ(with([](const Tensor& y) { return tanh(y - mean(y, 0)); }, x),
            "not cut: op sum may mix the rows, 16");
  const auto [small, xs] = small_scan(16);
  EXPECT_EQ(line_with(explained(small, xs, ones({16, 3})), "not cut"),
            "not cut: too little work: 4800 multiplications in all iterations, or elements that "
            "take as long; 2097152 pay for row blocks");
}

/// Explains a scan over entries of 3 and 2 steps. next: (state, x) -> next state.
template <class F>
std::string explained_ragged(F next) {
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch}));
  const auto f = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = next(h, x);
      return std::pair{y, y};
    };
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .initial = zeros({x.dim("batch")}),
                     .xs = x,
                     .body = body})
        .ys;
  };
  return explained(f, ones({batch, time}));
}

TEST_F(ExplainTest, ARaggedLoopIsCutUntilItsLongestEntryHasFinished) {
  const auto next = [](const Tensor& h, const Tensor& x) { return tanh(h + x); };
  EXPECT_EQ(from(explained_ragged(next), "loop 1"),
            R"(loop 1: scan "scan", 3 iterations, 1 instruction each
  carries: f32[batch=2]
  slices: f32[time[batch=2],batch=2]
  stacks: f32[time[batch=2],batch=2]
  hoisted, sunk: none
  fused: 2 ops in 1 tile program
  cut: 1 block of 2 rows of batch=2, until its longest entry has finished, on 1 thread
)");
}

TEST_F(ExplainTest, OpsThatMixFinishedEntriesAreNotMoved) {
  const auto next = [](const Tensor& h, const Tensor& x) {
    return tanh(h + x - sum(x, x.dim("batch")));
  };
  const std::string text = explained_ragged(next);
  EXPECT_EQ(line_with(text, "not moved"),
            "not moved: sum(f32[batch=2]) -> f32[], it may mix running and finished entries");
  EXPECT_EQ(line_with(text, "not cut"), "not cut: op sum may mix the rows, batch=2");
}

TEST_F(ExplainTest, ATrainingStepOnSequencesOfDifferentLengths) {
  const Threads two(2);
  std::vector<double> lengths;
  for (int i = 0; i < 16; ++i) lengths.push_back(6 - i % 4);
  const Dim ragged("time", cast(tensor(lengths, {batch}), i32));
  const std::string text =
      explained(value_and_grad(loss), model, random_normal({ragged, batch, in}));
  for (const char* sentence :
       {"loop 1: scan \"lstm\", 6 iterations, ",
        "  hoisted: dot(f32[time[batch=16],batch=16,in=256], f32[in=256,gate=320]) -> "
        "f32[time[batch=16],batch=16,gate=320], for all iterations at once\n",
        "  cut: 4 blocks of 4 rows of batch=16, grouped by length, on 2 threads, as shrinking "
        "batches\n",
        "loop 2: the gradient of scan \"lstm\", 6 iterations, ",
        "  sunk: dot(f32[time[batch=16],batch=16,hidden=80], "
        "f32[time[batch=16],batch=16,gate=320]) -> f32[hidden=80,gate=320], for all iterations at "
        "once, "
        "summed over them\n"})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
}

TEST_F(ExplainTest, NamesLoopsLeftToTheInterpreter) {
  // A state that doubles its rows in every iteration.
  const auto f = [](const Tensor& x) {
    const auto body = [&](const Tensor& i, const Tensor& h) {
      return std::tuple{i + 1, concat({h, h}, 0)};
    };
    return std::get<1>(while_loop(
        [](const Tensor& i, const Tensor&) { return i < 3; }, body, std::tuple{scalar(0), x},
        {.shape_invariants = {PartialShape{}, PartialShape{unknown, 2}}}));
  };
  const std::string text = explained(f, ones({1, 2}));
  EXPECT_EQ(from(text, "loop 1"), R"(loop 1: while_loop "while", until its condition ends it
  carries: i32[], f32[1,2]
  hoisted, sunk: none
  not moved: all ops, because its trip count is unknown before it runs; scan, or fori_loop with numbers as bounds, knows it
  no plan: run by the interpreter, because carry 1 comes back as f32[2,2] and went in as f32[1,2]
)");
}

TEST_F(ExplainTest, ALinearRecurrenceIsToldAboutLinearScan) {
  const Tensor x = random_normal({40, 8}), a = random_normal({8});
  const auto states = [](bool is_linear) {
    return [=](const Tensor& x, const Tensor& a) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = is_linear ? a * h + sin(x) : a * h * h + sin(x);
        return std::pair{next, next};
      };
      return scan(Scan{.initial = zeros_like(a), .xs = x, .body = body}).ys;
    };
  };
  const std::string hint =
      "  not moved: a linear recurrence; linear_scan computes it in one pass\n";
  EXPECT_TRUE(has(explained(states(true), x, a), hint));
  EXPECT_FALSE(has(explained(states(false), x, a), hint));
}

TEST_F(ExplainTest, LoopsInLoopsAndBranches) {
  const auto f = [](const Tensor& x, const Tensor& wanted) {
    const auto inner = [](const Tensor& x) {
      return scan(Scan{.initial = scalar(0.f),
                       .xs = x,
                       .body =
                           [](const Tensor& x, const Tensor& h) {
                             return std::pair{None{}, tanh(h + x)};
                           },
                       .name = "inner"})
          .state;
    };
    const auto outer = [&](const Tensor& x, const Tensor& h) {
      return std::pair{None{}, h + inner(x)};
    };
    return cond(
        wanted > 0,
        [&] {
          return scan(Scan{.initial = scalar(0.f), .xs = x, .body = outer, .name = "outer"}).state;
        },
        [] { return scalar(0.f); });
  };
  const std::string text = explained(f, ones({4, 3}), scalar(1));
  EXPECT_EQ(from(text, "cond, true"), R"(cond, true branch: 1 instruction
  loop 1: scan "outer", 4 iterations, 2 instructions each
    carries: f32[]
    slices: f32[4,3]
    hoisted, sunk: none
    not fused: add, no adjacent element-wise op of that size
    not cut: its carries have no dims
    loop 1.1: scan "inner", 3 iterations, 1 instruction each
      carries: f32[]
      slices: f32[3]
      hoisted, sunk: none
      fused: 2 ops in 1 tile program
      series: one call of the tile program runs many iterations
      not cut: its carries have no dims
cond, false branch: never taken, not planned
)");
}

TEST_F(ExplainTest, BranchesInSteps) {
  const Tensor w = random_normal({64, 64});
  const auto f = [&](const Tensor& x, const Tensor& bound) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const auto move = [&] { return tanh(matmul(h, w) + matmul(x, w)); };
      const Tensor next = cond(sum(x) > bound, move, [&] { return h; });
      return std::pair{next, next};
    };
    return scan(Scan{.initial = zeros({2, 64}), .xs = x, .body = body}).ys;
  };
  const auto jitted = jit(f, {.profile = true});
  const Tensor x = ones({6, 2, 64});
  for (int i = 0; i < 3; ++i) jitted(x, scalar(1.0f));
  EXPECT_EQ(from(jitted.explain(), "  cond, true"),
            R"(  cond, true branch: 3 instructions
    not moved: 2 products, as not every iteration takes the branch
    fused: 2 ops in 1 tile program
  cond, false branch: never taken, not planned
)");
  EXPECT_TRUE(has(jitted.explain(), "dot(f32[2,64], f32[64,64]) -> f32[2,64], 6 x "));
  jitted(x, scalar(1e6f));
  EXPECT_TRUE(has(jitted.explain(), "  cond, false branch: no instructions\n"));
}

TEST_F(ExplainTest, OpsThatMayFailStayBehindPrints) {
  const auto f = [](const Tensor& x, const Tensor& i) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor added = scatter_add(zeros({5}), print(i), x, 0);
      return std::pair{None{}, h + sum(square(x)) + sum(added)};
    };
    return scan(Scan{.initial = scalar(0.f), .xs = x, .body = body}).state;
  };
  ::testing::internal::CaptureStdout();
  const std::string text = explained(f, ones({3, 2}), tensor({1, 2}));
  ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(has(text, "hoisted: sum(f32[3,2]) -> f32[3], for all iterations at once")) << text;
  EXPECT_TRUE(has(text, "it may fail, and a print comes before it in the iteration")) << text;
}

/// As many layers as weights in the body of one scan, over rows of a batch.
template <class Weights>
Tensor layers_of_one_scan(const Weights& weights, const Tensor& x) {
  const auto body = [&](Tensor y, std::vector<Tensor> state) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      y = state[i] = tanh(matmul(y, weights[i]) + matmul(state[i], weights[i] * 0.5));
    return std::pair{y, state};
  };
  const std::int64_t rows = x.dims()[1].size(), width = x.dims()[2].size();
  return sum(scan(Scan{.initial = std::vector<Tensor>(weights.size(), zeros({rows, width})),
                       .xs = x,
                       .body = body,
                       .name = "layers"})
                 .ys);
}

TEST_F(ExplainTest, SplitLoopsNameTheirLayer) {
  const auto f = [](const std::vector<Tensor>& weights, const Tensor& x) {
    return layers_of_one_scan(weights, x);
  };
  const auto of_layers = [&](int count, int on, std::int64_t rows, std::int64_t width) {
    const Threads some(on);
    const auto jitted = jit(value_and_grad(f), {.passes = {.chunk_steps = 4}});
    const std::vector<Tensor> weights(static_cast<std::size_t>(count), ones({width, width}));
    jitted(weights, ones({12, rows, width}));
    return jitted.explain();
  };
  const std::string text = of_layers(3, 4, 2, 5);
  for (const char* loop : {"scan \"layers\"", "the gradient of scan \"layers\""})
    for (const int layer : {1, 2, 3}) {
      const std::string part = str("  split: layer ", layer, " of 3 of ", loop, '\n');
      const std::size_t at = text.find(part);
      EXPECT_TRUE(at != std::string::npos && text.find(part, at + 1) == std::string::npos)
          << part << "is not once in\n"
          << text;
    }
  const auto beside = [&](const std::string& text) { return line_with(text, "beside loop 1: "); };
  const std::string begins = "beside loop 1: starts a chunk as soon as its inputs are stacked, on ";
  EXPECT_EQ(beside(text), begins + "3 threads");
  EXPECT_EQ(beside(of_layers(3, 2, 2, 5)), begins + "2 threads");
  EXPECT_EQ(beside(of_layers(2, 4, 2, 5)), begins + "2 threads");
  EXPECT_EQ(beside(of_layers(2, 1, 2, 5)), begins + "1 thread");
  EXPECT_EQ(beside(of_layers(2, 2, 16, 160)),
            "beside loop 1: runs after it, as the row blocks keep all threads busy");
  // An unchanged loop gets no remark.
  EXPECT_FALSE(has(of_layers(1, 2, 2, 5), "split: "));
}

TEST_F(ExplainTest, ALoopThatAnotherWasJoinedToSaysSo) {
  const auto [f, x] = small_scan();
  const auto tangent = [f = f](const Tensor& x, const Tensor& h) {
    return jvp([&](const Tensor& x) { return f(x, h); }, x, x);
  };
  const std::string text = explained(tangent, x, ones({2, 3}));
  EXPECT_TRUE(has(text,
                  "loop 1: scan \"scan\", 5 iterations, 1 instruction each\n"
                  "  merged: the gradient of the gradient of scan \"scan\", which reads "
                  "its stacks\n"))
      << text;
  EXPECT_FALSE(has(text, "loop 2"));
  EXPECT_FALSE(has(explained(f, x, ones({2, 3})), "merged: "));
}

TEST_F(ExplainTest, PassesThatAreLeftOut) {
  const auto jitted = jit(
      loss, {.passes = {.batch_over_time = false, .pack_weights = false, .fuse_pointwise = false}});
  jitted(model, x);
  const std::string text = jitted.explain();
  EXPECT_TRUE(
      has(text, "not moved: all ops, because the pass batch_across_iterations is disabled\n"));
  EXPECT_TRUE(has(text, "not packed: all ops, because the pass pack_weights is disabled\n"));
  EXPECT_TRUE(has(text, ", because the pass fuse_pointwise is disabled\n"));
}

TEST_F(ExplainTest, ALoopInChunksIsALoopInALoop) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor y = tanh(h + matmul(x, w));
      return std::pair{y, y};
    };
    return scan(Scan{.initial = zeros({2, 3}), .xs = x, .body = body}).ys;
  };
  const auto jitted = jit(f, {.profile = true});
  for (int i = 0; i < 3; ++i) jitted(ones({1000, 2, 3}), ones({3, 3}));
  const std::string text = jitted.explain();
  for (const char* sentence :
       {"loop 1: scan \"scan\", 1000 iterations, in 20 chunks of 50 iterations\n",
        "  slices: f32[1000,2,3]\n", "  stacks: f32[1000,2,3]\n",
        "    time: ", " dot(f32[50,2,3], f32[3,3]) -> f32[50,2,3], 20 x ",
        "  loop 1.1: scan \"scan\", 50 iterations, 1 instruction each\n",
        "    hoisted: dot(f32[50,2,3], f32[3,3]) -> f32[50,2,3], for all iterations at once\n",
        " fused(2 ops) -> f32[2,3], 1000 x "})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
  // The inner loop's prediction covers a whole call, as its measured time does, instead of an outer
  // iteration.
  const auto predicted = [&](const std::string& from) {
    const std::string line = line_with(text.substr(text.find(from)), "time: predicted");
    std::smatch found;
    if (!std::regex_search(line, found, std::regex("predicted ([0-9.]+) ([num]?)s"))) return 0.;
    const double unit = found[2] == "n" ? 1e-9 : found[2] == "u" ? 1e-6 : 1e-3;
    return std::stod(found[1]) * unit;
  };
  EXPECT_GT(predicted("loop 1.1"), 0.5 * predicted("loop 1:"));
  const auto named = jit(loss, {.passes = {.chunk_steps = 4}});
  named(model, x);
  EXPECT_TRUE(has(named.explain(), ", 6 iterations, in 1 chunk of 4 iterations and one of 2\n"));
}

TEST_F(ExplainTest, TracesUnderATapeAreExplained) {
  const auto jitted = jit(loss);
  grad([&](const Model& m) { return jitted(m, x); })(model);
  const std::string text = jitted.explain();
  EXPECT_TRUE(has(text, "under a tape:\n"));
  EXPECT_TRUE(has(text, "its gradient:\n"));
  EXPECT_TRUE(has(text, "loop 1: the gradient of scan \"lstm\""));
  EXPECT_TRUE(has(text, "residuals: ")) << text;
}

TEST_F(ExplainTest, TheInterpreterRunsOpByOp) {
  const auto [f, x] = small_scan();
  const auto jitted = jit(f, {.executor = Executor::interpreter});
  jitted(x, ones({2, 3}));
  EXPECT_EQ(jitted.explain(), R"(jit "jit", recorded for 1 kind of arguments; as of the last call:
run op by op, by the interpreter
loop, op by op: scan "scan", 5 iterations
  carries: f32[2,3]
  slices: f32[5,2,3]
  stacks: f32[5,2,3]
)");
}

// An op hoisted out of the loop fails, although the loop has no iteration in which it would have
// run.
TEST_F(ExplainTest, ACallThatIsLeftToTheInterpreter) {
  const Tensor table = ones({4});
  const auto f = jit([&](const Tensor& x, const Tensor& k) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      return std::pair{gather(table * 2.f, k, 0) * x, h + x};
    };
    return sum(
        scan(Scan{.spatial_dim = x.dim("time"), .initial = scalar(0.f), .xs = x, .body = body}).ys);
  });
  const auto steps = [](int count) { return ones({Dim("time", scalar(count))}); };
  const std::string why =
      "run op by op, by the interpreter, because its plan failed: gather: index "
      "9 is out of range for axis 0 of f32[4], which has size 4\n";
  expect_values(f(steps(0), scalar(9)), {0});
  // With debug information the line of the gather follows.
  EXPECT_TRUE(has(f.explain(), why)) << f.explain();
  EXPECT_FALSE(has(f.explain(), "as of the call before:")) << f.explain();
  expect_values(f(steps(3), scalar(1)), {6});
  EXPECT_FALSE(has(f.explain(), "failed")) << f.explain();
  expect_values(f(steps(0), scalar(9)), {0});
  EXPECT_TRUE(has(f.explain(), why)) << f.explain();
  EXPECT_TRUE(has(f.explain(), "as of the call before:\n")) << f.explain();
  EXPECT_THROW(f(steps(3), scalar(9)), IndexError);
  EXPECT_FALSE(has(f.explain(), "failed")) << f.explain();  // the interpreter failed as well
}

TEST_F(ExplainTest, RefusesFunctionsWithoutACallOrAPlan) {
  const auto [f, x] = small_scan();
  const auto jitted = jit(f, {.name = "f"});
  EXPECT_EQ(message_of<ArgumentError>([&] { jitted.explain(); }),
            "jit \"f\": there is nothing to explain before the first call");
  const auto& g = f;
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { jit(g, {.name = "f", .executor = Executor::interpreter, .profile = true}); }),
            "jit \"f\": profile counts instructions of a plan, and the interpreter has none; leave "
            "out .executor");
}

TEST_F(ExplainTest, InvariantsLeaveLoopsOfUnknownLength) {
  const auto f = [](const Tensor& w, const Tensor& x) {
    return while_loop([](const Tensor& h) { return sum(h) < 100.f; },
                      [&](const Tensor& h) { return h + abs(tanh(w)) + 0.1f; }, x);
  };
  const std::string text = explained(f, ones({3}), zeros({3}));
  EXPECT_TRUE(has(text, "  hoisted: abs, tanh, once\n")) << text;
  EXPECT_TRUE(has(text, "  not moved: all other ops, because ")) << text;
  const auto without = jit(f, {.passes = {.hoist_invariants = false}});
  without(ones({3}), zeros({3}));
  EXPECT_FALSE(has(without.explain(), "hoisted: abs"));
  expect_all_close(jit(f)(ones({3}), zeros({3})), f(ones({3}), zeros({3})), 1e-6);
}

}  // namespace
}  // namespace reel
