// Each pass of a plan left out alone, and with all others: the results are the interpreter's.
#include <gtest/gtest.h>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

constexpr bool Passes::*kSwitches[] = {
    &Passes::simplify,     &Passes::hoist_invariants, &Passes::batch_over_time,
    &Passes::split_loops,  &Passes::chunk_loops,      &Passes::adjoin_loops,
    &Passes::pack_weights, &Passes::fuse_pointwise,   &Passes::cut_rows,
    &Passes::shrink_batch, &Passes::reuse_memory,
};

/// Passes that are all made, or all left out, but for one.
Passes all_but(bool Passes::*one, bool others) {
  Passes passes;
  for (bool Passes::*pass : kSwitches) passes.*pass = others;
  passes.*one = !others;
  return passes;
}

class PassSwitchesTest : public ::testing::Test {
 protected:
  template <class F, class... Args>
  static void expect_same_by_all(double tolerance, const F& f, const Args&... args) {
    const TreeLeaves expected = flatten(jit(f, {.executor = Executor::interpreter})(args...));
    for (std::size_t k = 0; k < std::size(kSwitches); ++k)
      for (const bool others : {true, false})
        for (const int count : {1, 2}) {
          SCOPED_TRACE(str("switch ", k, others ? " off" : " on", ", ", count, " threads"));
          const Threads on(count);
          const auto planned = jit(f, {.passes = all_but(kSwitches[k], others)});
          planned(args...);
          const TreeLeaves actual = flatten(planned(args...));
          ASSERT_EQ(actual.size(), expected.size());
          for (std::size_t i = 0; i < actual.size(); ++i)
            if (actual[i].kind == TreeLeaf::Kind::tensor)
              expect_all_close(actual[i].tensor, expected[i].tensor, tolerance);
        }
  }

  /// A step of Adam on two layers, which rows are enough to cut.
  static void expect_same_training(const Dim& batch, const Dim& time) {
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
    expect_same_by_all(1e-9, step, cell, Adam<Cell>(cell), x);
  }
};

TEST_F(PassSwitchesTest, ATrainingStep) { expect_same_training(Dim("batch", 16), Dim("time", 6)); }

TEST_F(PassSwitchesTest, ATrainingStepOverEntriesThatEndOneByOne) {
  const Dim batch("batch", 9);
  expect_same_training(batch, Dim("time", tensor({6, 1, 4, 2, 6, 3, 5, 1, 2}, {batch})));
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
  expect_same_by_all(2e-5, f, random_normal({4, 4}), random_normal({5, 3, 4}));
}

TEST_F(PassSwitchesTest, WhatIsTakenOutOfALoopThatDoesNotRunMayNotFail) {
  const auto looked_up = [](const Tensor& x, const Tensor& table, const Tensor& at) {
    const auto body = [&](const Tensor& row) { return row + sum(gather(table, at, 0)); };
    return map(body, x);
  };
  const auto planned = jit(looked_up);
  const Tensor table = ones({2, 3});
  // Nine rows are not there, but nobody asks for one.
  EXPECT_EQ(planned(zeros({0, 3}), table, scalar(9)).shape(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_NE(message_of<IndexError>([&] {
              planned(zeros({2, 3}), table, scalar(9));
            }).find("in iteration 0 of map \"map\""),
            std::string::npos);
  expect_values(planned(zeros({1, 3}), table, scalar(1)), {3, 3, 3});
}

TEST_F(PassSwitchesTest, ChunksOfNoSteps) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              jit([](const Tensor& x) { return x; }, {.name = "f", .passes = {.chunk_steps = -1}});
            }),
            "jit \"f\": passes.chunk_steps must be at least 1, or 0 for what fits into the cache, "
            "got -1");
}

}  // namespace
}  // namespace reel
