// Draws that take the numbers of rows: the graph after the pass.
#include "reel/trace/passes/loop_structure/number_draws.h"

#include <gtest/gtest.h>

#include "reel/tests/trace/plan/planned.h"

namespace reel {
namespace {

class NumberDrawsTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 3}, hidden{"hidden", 2};
  const Tensor h = tensor({1.0f, 2.0f, 3.0f}, {batch});

  /// Applies the pass for the dim of h, which is also the last dim of the first input.
  static Ref<Graph> with_numbers(const Graph& graph) {
    return number_draws(graph, graph.types[graph.inputs[0]].dims().back());
  }
};

TEST_F(NumberDrawsTest, DrawsInLoopsAreNumbered) {
  const auto f = [&](const Tensor& h) {
    const Dim rows = h.dims()[0];
    const auto body = [&](const Tensor& s) {
      const auto inner = [&](const Tensor& s) {
        return std::pair{None{}, s * sum(random_uniform({hidden, rows}), hidden)};
      };
      return std::pair{s + random_uniform({rows}),
                       scan(Scan{.spatial_dim = hidden, .initial = s, .body = inner}).state};
    };
    return std::tuple{scan(Scan{.spatial_dim = hidden, .initial = h, .body = body}).ys,
                      random_normal({rows}), truncated_normal({hidden})};
  };
  EXPECT_EQ(ops_behind(with_numbers, f, h),
            "full loop{full fold_key fold_key draw_rows add full loop{full fold_key fold_key "
            "draw_rows sum mul}} draw_rows truncated_normal");
}

TEST_F(NumberDrawsTest, DrawsWithoutRowsAreNotNumbered) {
  const auto traced = jit([&](const Tensor& h) { return h * sum(random_uniform({hidden})); });
  traced(h);
  EXPECT_FALSE(with_numbers(traced.graph()));
}

}  // namespace
}  // namespace reel
