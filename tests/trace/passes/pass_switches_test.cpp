// Each pass of a plan switched off, and switched on alone: it has an effect, and results agree with
// the interpreter.
#include <gtest/gtest.h>

#include <sstream>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

using Switch = bool Passes::*;

struct NamedSwitch {
  const char* name;
  Switch pass;
  std::vector<Switch> needs = {};  ///< switches without which it does nothing
};

const NamedSwitch kSwitches[] = {
    {"simplify", &Passes::simplify},
    {"hoist_invariants", &Passes::hoist_invariants},
    {"hoist_embedding_products", &Passes::multiply_tables},
    {"batch_across_iterations", &Passes::batch_over_time},
    {"split_loops", &Passes::split_loops, {&Passes::batch_over_time}},
    {"chunk_loops", &Passes::chunk_loops, {&Passes::batch_over_time}},
    {"group_pipelined_loops",
     &Passes::adjoin_loops,
     {&Passes::batch_over_time, &Passes::split_loops, &Passes::chunk_loops}},
    {"pack_weights", &Passes::pack_weights},
    {"fuse_pointwise", &Passes::fuse_pointwise},
    {"cut_rows", &Passes::cut_rows},
    {"shrink_batch", &Passes::shrink_batch},
    {"reuse_memory", &Passes::reuse_memory},
};

/// Six steps are three chunks of two. With 0, chunks are as long as the cache allows, and six steps
/// are not chunked.
constexpr int kChunkSteps[] = {0, 2};

/// Returns switches with all passes on except one, or with only this pass and its prerequisites on.
Passes all_but(const NamedSwitch& one, bool others, int chunk_steps) {
  Passes passes{.chunk_steps = chunk_steps};
  for (const NamedSwitch& each : kSwitches) passes.*each.pass = others;
  if (!others)
    for (const Switch needed : one.needs) passes.*needed = true;
  passes.*one.pass = !others;
  return passes;
}

/// Returns the ops of a program's graph, the row blocks of its loops and the memory of its values,
/// without the remarks on passes that are switched off.
template <class F, class... Args>
std::string made_by(const Passes& passes, const F& f, const Args&... args) {
  const auto planned = jit(f, {.passes = passes});
  planned(args...);
  std::string result = ops(*optimise_for_plan(planned.graph(), passes).graph);
  std::istringstream text(planned.explain());
  for (std::string line; std::getline(text, line);) {
    const std::size_t at = line.find_first_not_of(' ');
    if (line.compare(at, 5, "cut: ") == 0) result += line.substr(at) + '\n';
    if (line.compare(at, 8, "values: ") == 0) result += line.substr(at, line.rfind(',')) + '\n';
  }
  return result;
}

/// Returns the names of the passes that change the plan when they are switched off, or on alone.
template <class F, class... Args>
std::string that_do_something(int chunk_steps, const F& f, const Args&... args) {
  std::string result;
  for (const NamedSwitch& one : kSwitches) {
    const Passes all{.chunk_steps = chunk_steps}, alone = all_but(one, false, chunk_steps);
    Passes none = alone;
    none.*one.pass = false;
    const bool from_all =
        made_by(all, f, args...) != made_by(all_but(one, true, chunk_steps), f, args...);
    const bool to_none = made_by(alone, f, args...) != made_by(none, f, args...);
    if (from_all || to_none)
      result += str(result.empty() ? "" : " ", one.name,
                    from_all ? to_none ? "" : " (with others)" : " (alone)");
  }
  return result;
}

class PassSwitchesTest : public ::testing::Test {
 protected:
  template <class F, class... Args>
  static void expect_same_by_all(double tolerance, const F& f, const Args&... args) {
    const TreeLeaves expected = flatten(jit(f, {.executor = Executor::interpreter})(args...));
    for (const NamedSwitch& one : kSwitches)
      for (const int chunk_steps : kChunkSteps)
        for (const bool others : {true, false})
          for (const int count : {1, 2}) {
            SCOPED_TRACE(str(one.name, others ? " off" : " on", ", chunks of ", chunk_steps, ", ",
                             count, " threads"));
            const Threads on(count);
            const auto planned = jit(f, {.passes = all_but(one, others, chunk_steps)});
            planned(args...);
            const TreeLeaves actual = flatten(planned(args...));
            ASSERT_EQ(actual.size(), expected.size());
            for (std::size_t i = 0; i < actual.size(); ++i)
              if (actual[i].kind == TreeLeaf::Kind::tensor)
                expect_all_close(actual[i].tensor, expected[i].tensor, tolerance);
          }
  }

  /// Trains a two-layer model with Adam for a step, on enough rows for row blocks.
  static void expect_same_training(const Dim& batch, const Dim& time, const char* whole,
                                   const char* over_chunks) {
    manual_seed(5);
    const Dim in("in", 30), low("low", 70), high("high", 70);
    using Cell = StackedCells<LstmCell, LstmCell>;
    const LstmCellOptions options{.dtype = f64};
    const Cell cell =
        stack_cells(LstmCell::init(in, low, options), LstmCell::init(low, high, options));
    const Tensor x = mask_padding(random_normal({time, batch, in}, f64), 0);
    const auto loss = [](const Cell& cell, const Tensor& x) {
      const Dim time = x.dim("time");
      const auto [outputs, last] = recur(cell, x, time);
      return mean(square(outputs)) + sum(std::get<0>(last).h) * 0.01;
    };
    const auto step = [&](const Cell& cell, const Adam<Cell>& adam, const Tensor& x) {
      const auto [value, gradient] = value_and_grad(loss)(cell, x);
      Cell next = cell;
      Adam<Cell> optimiser = adam;
      optimiser.update(next, gradient);
      return std::tuple{value, next, optimiser};
    };
    const Threads on(2);
    EXPECT_EQ(that_do_something(0, step, cell, Adam<Cell>(cell), x), whole);
    EXPECT_EQ(that_do_something(2, step, cell, Adam<Cell>(cell), x), over_chunks);
    expect_same_by_all(1e-9, step, cell, Adam<Cell>(cell), x);
  }
};

TEST_F(PassSwitchesTest, PassesMayBeOffInATrainingStep) {
  expect_same_training(Dim("batch", 16), Dim("time", 6),
                       "simplify (with others) batch_across_iterations split_loops pack_weights "
                       "fuse_pointwise cut_rows "
                       "reuse_memory",
                       "simplify (with others) batch_across_iterations split_loops chunk_loops "
                       "group_pipelined_loops (with others) "
                       "pack_weights fuse_pointwise cut_rows reuse_memory");
}

TEST_F(PassSwitchesTest, PassesMayBeOffIfEntriesFinishOneByOne) {
  const Dim batch("batch", 9);
  expect_same_training(batch, Dim("time", tensor({6, 1, 4, 2, 6, 3, 5, 1, 2}, {batch})),
                       "batch_across_iterations chunk_loops pack_weights "
                       "fuse_pointwise shrink_batch reuse_memory",
                       "simplify (with others) batch_across_iterations chunk_loops pack_weights "
                       "fuse_pointwise shrink_batch reuse_memory");
}

TEST_F(PassSwitchesTest, ALoopOfUnknownLengthAroundAnother) {
  manual_seed(6);
  const auto f = value_and_grad([](const Tensor& w, const Tensor& x) {
    const auto inner = [&](const Tensor& row, const Tensor& h) {
      const Tensor next = tanh(matmul(h, w * 2. - w) + row);
      return std::pair{next, next};
    };
    const auto outer = [&](const Tensor& total, const Tensor& h) {
      const auto scanned = scan(Scan{.initial = h, .xs = x, .body = inner});
      return std::tuple{total + mean(square(scanned.ys)), scanned.state};
    };
    const auto [total, last] =
        while_loop([](const Tensor& total, const Tensor&) { return total < 0.9f; }, outer,
                   std::tuple{scalar(0.f), zeros({3, 4})});
    return total + sum(last);
  });
  const Tensor w = random_normal({4, 4}), x = random_normal({6, 3, 4});
  EXPECT_EQ(
      that_do_something(2, f, w, x),
      "simplify (with others) hoist_invariants batch_across_iterations chunk_loops pack_weights "
      "(with others) fuse_pointwise reuse_memory");
  expect_same_by_all(2e-5, f, w, x);
}

TEST_F(PassSwitchesTest, HoistedOpsOfALoopThatNeverRunsDoNotFail) {
  const auto looked_up = [](const Tensor& x, const Tensor& table, const Tensor& at) {
    const auto body = [&](const Tensor& row) { return row + sum(gather(table, at, 0)); };
    return map(body, x);
  };
  const auto planned = jit(looked_up);
  const Tensor table = ones({2, 3});
  // The index of nine is out of range, and an empty batch reads no row.
  EXPECT_EQ(planned(zeros({0, 3}), table, scalar(9)).shape(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_NE(message_of<IndexError>([&] {
              planned(zeros({2, 3}), table, scalar(9));
            }).find("in iteration 0 of map \"map\""),
            std::string::npos);
  expect_values(planned(zeros({1, 3}), table, scalar(1)), {3, 3, 3});
}

TEST_F(PassSwitchesTest, ChunksOfNoStepsAndBlocksOfNoRows) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              jit([](const Tensor& x) { return x; }, {.name = "f", .passes = {.chunk_steps = -1}});
            }),
            "jit \"f\": passes.chunk_steps must be at least 1, or 0 for as many as fit into the "
            "cache, got -1");
  EXPECT_EQ(
      message_of<ArgumentError>([] {
        jit([](const Tensor& x) { return x; }, {.name = "f", .passes = {.block_rows = -2}});
      }),
      "jit \"f\": passes.block_rows must be at least 1, or 0 for the library's choice, got -2");
}

}  // namespace
}  // namespace reel
