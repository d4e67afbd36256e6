// tests/trace/passes/chunk_loops.h — the fixture of tests of chunked loops: an RNN, and comparisons
// with the unchunked loop.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "reel/tests/trace/passes/plain_rnn.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/loop_structure/chunk_loops.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {

class ChunkLoopsTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 2}, in{"in", 3}, unit{"unit", 5}, next_unit{"next_unit", 5},
      out{"out", 2};

  Problem named_problem(const Dim& time) const {
    manual_seed(3);
    const auto draw = [](Dims dims) { return random_normal(dims, f64) * 0.5; };
    return {{draw({in, unit}), draw({next_unit, unit}), draw({unit, out})},
            draw({time, batch, in})};
  }
  /// reverse: from the last time step to the first.
  auto named_rnn(bool reverse = false) const {
    return [this, reverse](const Problem& p) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor before = rename(h, unit, next_unit);
        const Tensor next =
            tanh(matmul(x, p.weights.in, in) + matmul(before, p.weights.recurrent, next_unit));
        return std::pair{matmul(next, p.weights.out, unit), next};
      };
      const auto made = scan(Scan{.spatial_dim = p.x.dim("time"),
                                  .initial = zeros({p.x.dim("batch"), unit}, f64),
                                  .xs = p.x,
                                  .body = body,
                                  .reverse = reverse});
      const Tensor of_state = sum(made.state);  // first, as in plain_rnn
      return sum(square(made.ys)) + of_state;
    };
  }

  /// Expects close values and gradients.
  static void expect_close(const std::pair<Tensor, Problem>& actual,
                           const std::pair<Tensor, Problem>& expected) {
    EXPECT_NEAR(actual.first.item<double>(), expected.first.item<double>(), 1e-12);
    const Problem &mine = actual.second, &theirs = expected.second;
    expect_all_close(mine.weights.recurrent, theirs.weights.recurrent, 1e-12);
    expect_all_close(mine.weights.in, theirs.weights.in, 1e-12);
    expect_all_close(mine.x, theirs.x, 1e-12);
  }

  template <class F, class... Args>
  static std::string ops_in_chunks(int steps, const F& f, const Args&... args) {
    const auto jitted = jit(f);
    jitted(args...);
    return ops(
        *optimise_for_plan(jitted.graph(),
                           {.pack_weights = false, .fuse_pointwise = false, .chunk_steps = steps})
             .graph);
  }
  template <class F, class... Args>
  static void expect_same_in_chunks(int steps, const F& f, const Args&... args) {
    SCOPED_TRACE(str("chunks of ", steps));
    const auto flat = [&](const Passes& passes) {
      manual_seed(11);
      return flatten(jit(f, {.executor = Executor::plan, .passes = passes})(args...));
    };
    const auto whole = flat({.chunk_loops = false}), parts = flat({.chunk_steps = steps});
    ASSERT_EQ(whole.size(), parts.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (whole[i].kind == TreeLeaf::Kind::tensor)
        expect_all_close(parts[i].tensor, whole[i].tensor, 1e-12);
  }
};

}  // namespace reel
