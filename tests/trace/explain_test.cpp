// What explain() says of plans: what became of loops, why something was not done, bytes and times.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

/// Without the lines whose numbers are another machine's on another machine.
std::string without_times(const std::string& text) {
  std::istringstream in(text);
  std::string result;
  for (std::string line; std::getline(in, line);) {
    const std::string words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (!words.starts_with("time:") && !words.starts_with("rates:")) result += line + '\n';
  }
  return result;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The first line that has a part, without what is before it.
std::string line_with(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

/// All from there on, without times.
std::string from(const std::string& text, const std::string& part) {
  return without_times(text.substr(std::min(text.find(part), text.size())));
}

/// What is said after a call.
template <class F, class... Args>
std::string explained(const F& f, const Args&... args) {
  const auto jitted = jit(f);
  jitted(args...);
  return jitted.explain();
}

class ExplainTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(3); }

  struct Model {
    LstmCell cell;
    Linear out;
  };
  const Dim time{"time", 6}, batch{"batch", 16}, in{"in", 256}, hidden{"hidden", 80},
      classes{"classes", 10};
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, classes)};
  const Tensor x = random_normal({time, batch, in});

  static Tensor loss(const Model& m, const Tensor& x) {
    const auto body = [&](const Tensor& x, const LstmCell::State& s) {
      const auto [y, next] = m.cell(x, s);
      return std::pair{m.out(y), next};
    };
    return mean(square(scan(Scan{.spatial_dim = x.dim("time"),
                                 .initial = m.cell.initial_state({x.dim("batch")}),
                                 .xs = x,
                                 .body = body,
                                 .name = "lstm"})
                           .ys));
  }

  /// tanh(h + x) of plain sizes, five steps.
  static auto small_scan(std::int64_t rows = 2) {
    return std::pair{[](const Tensor& x, const Tensor& h) {
                       const auto body = [](const Tensor& x, const Tensor& h) {
                         const Tensor y = tanh(h + x);
                         return std::pair{y, y};
                       };
                       return scan(Scan{.initial = h, .xs = x, .body = body}).ys;
                     },
                     ones({5, rows, 3})};
  }
};

TEST_F(ExplainTest, ATrainingStepSaysWhatBecameOfItsLoops) {
  const Threads two(2);
  const std::string text = explained(value_and_grad(loss), model, x);
  for (const char* sentence :
       {"jit \"jit\", recorded for 1 kind of arguments; as of the last call:\n",
        "loop 1: scan \"lstm\", 6 steps, ", "  carries: 2 x f32[batch=16,hidden=80]\n",
        "  hoisted: dot(f32[time=6,batch=16,in=256], f32[in=256,gate=320]) -> "
        "f32[time=6,batch=16,gate=320], for all steps at once\n",
        "  not moved: dot(f32[batch=16,hidden=80], f32[hidden=80,gate=320]) -> "
        "f32[batch=16,gate=320], it waits for the step before, and the next one for it\n",
        "  not moved: dot(f32[batch=16,hidden=80], f32[hidden=80,classes=10]) -> "
        "f32[batch=16,classes=10], so many rows by so small a matrix are as fast there, and stay "
        "in the cache\n",
        "  packed: f32[hidden=80,gate=320], before the loop\n",
        "  not packed: f32[hidden=80,classes=10], so small a matrix is read as it is\n",
        "  fused: ", " ops in 1 tile program\n",
        "  saved for the gradient: ", "  cut: 2 blocks of 8 rows of batch=16, on 2 threads\n",
        "loop 2: the gradient of scan \"lstm\", 6 steps, ",
        "  sunk: dot(f32[time=6,batch=16,hidden=80], f32[time=6,batch=16,gate=320]) -> "
        "f32[hidden=80,gate=320], for all steps at once, added up over them\n"})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
}

TEST_F(ExplainTest, WhatIsSavedIsWhatNothingButTheGradientReads) {
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
  EXPECT_EQ(line_with(all, "saved for the gradient"), "");
  EXPECT_EQ(line_with(last, "saved for the gradient"),
            "saved for the gradient: 1 stack, 12 B a step, 60 B in all: f32[5,3]");
  // Of two loops each: the results of one, and the cotangents of the other.
  EXPECT_EQ(line_with(all, "stacks of loops"),
            "stacks of loops, among those: 120 B, 0 B of it saved for gradients");
  EXPECT_EQ(line_with(last, "stacks of loops"),
            "stacks of loops, among those: 120 B, 60 B of it saved for gradients");
}

TEST_F(ExplainTest, TheWholeTextOfASmallLoop) {
  const auto [f, x] = small_scan();
  const auto jitted = jit(f, {.name = "small"});
  jitted(x, ones({2, 3}));
  EXPECT_EQ(without_times(jitted.explain()),
            R"(jit "small", recorded for 1 kind of arguments; as of the last call:
1 instruction, those in loops not counted
bytes:
  arguments that are read: 144 B
  captures: 0 B
  constants: 8 B
  values: 28 B, in 128 B of memory, in which they take turns
  values in blocks of their own: 0 B
  stacks of loops, among those: 120 B, 0 B of it saved for gradients
  carries of loops, two buffers each: 48 B
  values inside loops: 0 B
  results: 120 B
loop 1: scan "scan", 5 steps, 1 instruction each
  carries: f32[2,3]
  slices: f32[5,2,3]
  stacks: f32[5,2,3]
  hoisted, sunk: nothing
  fused: 2 ops in 1 tile program
  not cut: the rows, 2, are fewer than two blocks of 8
)");
}

TEST_F(ExplainTest, BytesOfEachClass) {
  // Weights of 4 · 6 and 6 · 6 numbers, three steps of two rows.
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
  // Read: x, 3 · 2 · 4 numbers, and the weights. Constants: the state, 2 · 6 numbers, and where the
  // loop is, 8 bytes. Values: x·W of all steps, the weights once more, packed, the last state, and
  // how many steps there were, 4 bytes. In the loop: h·U.
  for (const char* sentence :
       {"  arguments that are read: 336 B\n", "  captures: 0 B\n", "  constants: 56 B\n",
        "  values: 340 B, in 512 B of memory", "  values in blocks of their own: 0 B\n",
        "  stacks of loops, among those: 144 B, 0 B of it saved",
        "  carries of loops, two buffers each: 96 B\n", "  values inside loops: 64 B\n",
        "  results: 144 B\n"})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
}

TEST_F(ExplainTest, WhatAPolicyKeeps) {
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
  EXPECT_EQ(line_with(every, "checkpoints: "),
            "checkpoints: f32[2,3], before every 8 steps; the gradient runs the steps between them "
            "again");
  EXPECT_TRUE(has(every, "steps that were not kept: run again, or read from the file")) << every;
  EXPECT_FALSE(has(every, "saved for the gradient")) << every;
  EXPECT_FALSE(has(every, "in a file")) << every;
  EXPECT_EQ(
      line_with(explain(Checkpoint::budget(1 << 20), false), "checkpoints: "),
      "checkpoints: f32[2,3], as many as fit into half of 1.0 MiB; the gradient runs the steps "
      "between them again");
  const std::string in_file = explain({}, Spill{.bytes_in_memory = 3 << 20});
  EXPECT_EQ(line_with(in_file, "in a file: "), "in a file: what it keeps, but for 3.0 MiB")
      << in_file;
  EXPECT_FALSE(has(explain({}, false), "checkpoints: "));
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
  EXPECT_EQ(with(plain, x), "");  // it is
  EXPECT_EQ(with(plain, slice(x, 1, 0, 15)),
            "not cut: the rows, 15, are fewer than two blocks of 8");
  const Tensor other = tensor({15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(with([&](const Tensor& y) { return gather(y, other, 0); }, x),
            "not cut: op gather may mix the rows, 16");
  EXPECT_EQ(with([](const Tensor& y) { return tanh(y - mean(y, 0)); }, x),
            "not cut: op sum may mix the rows, 16");
  const auto [small, xs] = small_scan(16);
  EXPECT_EQ(line_with(explained(small, xs, ones({16, 3})), "not cut"),
            "not cut: too little to do: 0 multiplications per row and step, 131072 are "
            "worth a block of rows");
}

/// A scan of entries of 3 and of 2 steps; next: what becomes of a state and x.
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

TEST_F(ExplainTest, EntriesThatEndOneByOne) {
  const auto next = [](const Tensor& h, const Tensor& x) { return tanh(h + x); };
  EXPECT_EQ(from(explained_ragged(next), "loop 1"),
            R"(loop 1: scan "scan", 3 steps, 1 instruction each
  carries: f32[batch=2]
  slices: f32[time[batch=2],batch=2]
  stacks: f32[time[batch=2],batch=2]
  hoisted, sunk: nothing
  fused: 2 ops in 1 tile program
  cut: 1 block of 2 rows of batch=2, to the end of the longest, on 1 thread
)");
}

TEST_F(ExplainTest, EntriesThatAreMixedWhileTheyEnd) {
  const auto next = [](const Tensor& h, const Tensor& x) {
    return tanh(h + x - sum(x, x.dim("batch")));
  };
  const std::string text = explained_ragged(next);
  EXPECT_EQ(line_with(text, "not moved"),
            "not moved: sum(f32[batch=2]) -> f32[], it may mix entries, of which some have ended");
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
       {"loop 1: scan \"lstm\", 6 steps, ",
        "  hoisted: dot(f32[time[batch=16],batch=16,in=256], f32[in=256,gate=320]) -> "
        "f32[time[batch=16],batch=16,gate=320], for all steps at once\n",
        "  cut: 4 blocks of 4 rows of batch=16, those of similar lengths together, on 2 threads\n",
        "loop 2: the gradient of scan \"lstm\", 6 steps, ",
        "  sunk: dot(f32[time[batch=16],batch=16,hidden=80], "
        "f32[time[batch=16],batch=16,gate=320]) -> f32[hidden=80,gate=320], for all steps at once, "
        "added up over them\n"})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
}

TEST_F(ExplainTest, WhatIsLeftToTheInterpreter) {
  // A state that grows by a row in every step.
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
  hoisted, sunk: nothing
  not moved: anything, because the number of its steps is not known beforehand
  no plan: left to the interpreter, because carry 1 comes back as f32[2,2] and went in as f32[1,2]
)");
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
  EXPECT_EQ(from(text, "a branch"), R"(a branch of cond that has not been taken: not planned
loop 1: scan "outer", 4 steps, 2 instructions each
  carries: f32[]
  slices: f32[4,3]
  hoisted, sunk: nothing
  not fused: add, with no other element-wise op of that size beside it
  not cut: its carries have no dims
  loop 1.1: scan "inner", 3 steps, 1 instruction each
    carries: f32[]
    slices: f32[3]
    hoisted, sunk: nothing
    fused: 2 ops in 1 tile program
    not cut: its carries have no dims
)");
}

TEST_F(ExplainTest, PassesThatAreLeftOut) {
  const auto jitted = jit(
      loss, {.passes = {.batch_over_time = false, .pack_weights = false, .fuse_pointwise = false}});
  jitted(model, x);
  const std::string text = jitted.explain();
  EXPECT_TRUE(has(text, "not moved: anything, because the pass batch_over_time is left out\n"));
  EXPECT_TRUE(has(text, "not packed: anything, because the pass pack_weights is left out\n"));
  EXPECT_TRUE(has(text, ", because the pass fuse_pointwise is left out\n"));
}

TEST_F(ExplainTest, RowsAndMemoryThatAreLeftAsTheyAre) {
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
      has(text_of(same, {.cut_rows = false}), "  not cut: the pass cut_rows is left out\n"));
  EXPECT_TRUE(has(text_of(same, {.shrink_batch = false}), "  cut: 2 blocks of 8 rows of batch=16"));
  EXPECT_TRUE(has(text_of(same, {}), " of memory, in which they take turns\n"));
  EXPECT_TRUE(
      has(text_of(same, {.reuse_memory = false}), " of memory, each in a place of its own\n"));
  EXPECT_TRUE(has(text_of(ragged, {}), ", those of similar lengths together"));
  EXPECT_TRUE(has(text_of(ragged, {.shrink_batch = false}),
                  "  not cut: the pass shrink_batch is left out\n"));
}

TEST_F(ExplainTest, TimesArePredictedAndWithoutAProfileNotMeasured) {
  const auto [f, x] = small_scan();
  const std::string text = explained(f, x, ones({2, 3}));
  EXPECT_TRUE(has(text, "time: predicted "));
  EXPECT_TRUE(has(text, "rates: on one thread "));
  EXPECT_FALSE(has(text, "measured"));
}

TEST_F(ExplainTest, AProfileCountsEveryStep) {
  const auto [f, x] = small_scan();
  const auto jitted = jit(f, {.profile = true});
  jitted(x, ones({2, 3}));
  EXPECT_TRUE(has(jitted.explain(), " a call, the first one, in which loops are planned\n"));
  for (int i = 0; i < 4; ++i) jitted(x, ones({2, 3}));
  const std::string text = jitted.explain();
  EXPECT_TRUE(std::regex_search(
      text, std::regex("\ntime: predicted [1-9][0-9.]* [nu]s, measured [1-9][0-9.]* .?s a call, "
                       "the mean of 4\n  time: [1-9][0-9]* % scan \"scan\", 1 x [1-9]")))
      << text;
  EXPECT_TRUE(std::regex_search(
      text, std::regex("\n    time: 100 % fused.2 ops. -> f32.2,3., 5 x [1-9][0-9.]* .?s\n")))
      << text;
}

TEST_F(ExplainTest, AProfileOfALoopThatIsCutAddsUpItsBlocks) {
  const auto jitted = jit(value_and_grad(loss), {.profile = true});
  for (int i = 0; i < 3; ++i) jitted(model, x);
  const std::string text = jitted.explain();
  EXPECT_TRUE(has(text,
                  "packed_dot(f32[batch=8,hidden=80], f32[hidden=80,gate=320]) -> "
                  "f32[batch=8,gate=320], 12 x "))
      << text;
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
       {"loop 1: scan \"scan\", 1000 steps, in 20 chunks of 50 steps\n",
        "  slices: f32[1000,2,3]\n", "  stacks: f32[1000,2,3]\n",
        "    time: ", " dot(f32[50,2,3], f32[3,3]) -> f32[50,2,3], 20 x ",
        "  loop 1.1: scan \"scan\", 50 steps, 1 instruction each\n",
        "    hoisted: dot(f32[50,2,3], f32[3,3]) -> f32[50,2,3], for all steps at once\n",
        " fused(2 ops) -> f32[2,3], 1000 x "})
    EXPECT_TRUE(has(text, sentence)) << sentence << "\nis not in\n" << text;
  // The inner loop's prediction is for a call too, as what was measured is: not a quarter of it.
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
  EXPECT_TRUE(has(named.explain(), ", 6 steps, in 1 chunk of 4 steps and one of 2\n"));
}

TEST_F(ExplainTest, AProfileSaysHowOftenALoopRanThatNobodyKnewTheLengthOf) {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor& x) { return sum(x) < 100.; },
                      [](const Tensor& x) { return x * 2.; }, x);
  };
  const auto jitted = jit(f, {.profile = true});
  for (int i = 0; i < 3; ++i) jitted(ones({2}));
  const std::string text = jitted.explain();
  EXPECT_TRUE(has(text, "until its condition ends it (6 steps a run, counted)")) << text;
  EXPECT_TRUE(has(text, "time: predicted"));
}

TEST_F(ExplainTest, UnderATape) {
  const auto jitted = jit(loss);
  grad([&](const Model& m) { return jitted(m, x); })(model);
  const std::string text = jitted.explain();
  EXPECT_TRUE(has(text, "under a tape:\n"));
  EXPECT_TRUE(has(text, "its gradient:\n"));
  EXPECT_TRUE(has(text, "loop 1: the gradient of scan \"lstm\""));
  EXPECT_TRUE(has(text, "saved for the gradient: ")) << text;
}

TEST_F(ExplainTest, TheInterpreterRunsOpByOp) {
  const auto [f, x] = small_scan();
  const auto jitted = jit(f, {.executor = Executor::interpreter});
  jitted(x, ones({2, 3}));
  EXPECT_EQ(jitted.explain(), R"(jit "jit", recorded for 1 kind of arguments; as of the last call:
run op by op, by the interpreter
loop, op by op: scan "scan", 5 steps
  carries: f32[2,3]
  slices: f32[5,2,3]
  stacks: f32[5,2,3]
)");
}

TEST_F(ExplainTest, Errors) {
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

TEST_F(ExplainTest, WhatNoIterationChangesLeavesLoopsOfUnknownLength) {
  const auto f = [](const Tensor& w, const Tensor& x) {
    return while_loop([](const Tensor& h) { return sum(h) < 100.f; },
                      [&](const Tensor& h) { return h + abs(tanh(w)) + 0.1f; }, x);
  };
  const std::string text = explained(f, ones({3}), zeros({3}));
  EXPECT_TRUE(has(text, "  hoisted: abs, tanh, once\n")) << text;
  EXPECT_TRUE(has(text, "  not moved: anything else, because ")) << text;
  const auto without = jit(f, {.passes = {.hoist_invariants = false}});
  without(ones({3}), zeros({3}));
  EXPECT_FALSE(has(without.explain(), "hoisted: abs"));
  expect_all_close(jit(f)(ones({3}), zeros({3})), f(ones({3}), zeros({3})), 1e-6);
}

TEST_F(ExplainTest, WhatAGradientKeepsOfALoopOfUnknownLengthIsNotNothing) {
  const auto f = [](const Tensor& w) {
    return sum(while_loop([](const Tensor& h) { return sum(h) < 3.f; },
                          [&](const Tensor& h) { return tanh(h) * w + 0.5f; }, zeros({3})));
  };
  const std::string text = explained(grad(f), ones({3}));
  EXPECT_TRUE(has(text, "as many as there are in all")) << text;
  EXPECT_FALSE(has(text, "0 B a step")) << text;
}

}  // namespace
}  // namespace reel
