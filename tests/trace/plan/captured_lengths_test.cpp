// Loops over ragged time that attend to captured ragged keys, some rows at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reel/tests/trace/plan/planned.h"
#include "reel/tests/trace/plan/row_cuts.h"
#include "reel/trace/passes/analysis/row_axes.h"
#include "reel/trace/passes/rows/body_on_rows.h"

namespace reel {
namespace {

class CapturedLengthsTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(17); }

  struct Parameters {
    Tensor keys, x, w, h;
  };
  const Dim hidden{"hidden", 130}, next{"next", 130};

  /// Returns parameters with NaN in the padding.
  Parameters parameters(const std::vector<int>& times, const std::vector<int>& sources) const {
    const Dim batch("batch", std::ssize(times)), time("time", tensor(times, {batch})),
        source("source", tensor(sources, {batch}));
    return {mask_padding(random_normal({batch, source, hidden}, f64) * 0.1, NAN),
            mask_padding(random_normal({time, batch, hidden}, f64), NAN),
            random_normal({hidden, next}, f64) * 0.1, random_normal({batch, hidden}, f64)};
  }

  Tensor states(const Parameters& p) const {
    const Dim source = p.keys.dim("source");
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor weights = softmax(matmul(p.keys, h, hidden), source);
      const Tensor y =
          tanh(x + matmul(weights, p.keys, source) + rename(matmul(h, p.w, hidden), next, hidden));
      return std::pair{y, y};
    };
    return scan(Scan{.spatial_dim = p.x.dim("time"), .initial = p.h, .xs = p.x, .body = body}).ys;
  }

  /// Returns states, and gradients of two orders, with padding as 0.
  auto everything() const {
    return [this](const Parameters& p) {
      const auto loss = [&](const Parameters& p) { return sum(square(states(p))); };
      const auto slope = [&](const Parameters& p) {
        const Parameters g = grad(loss)(p);
        return sum(square(g.keys)) + sum(square(g.x)) + sum(square(g.w)) * 0.01 + sum(g.h);
      };
      const auto clean = [](const Parameters& g) {
        return Parameters{mask_padding(g.keys), mask_padding(g.x), g.w, g.h};
      };
      return std::tuple{mask_padding(states(p)), clean(grad(loss)(p)), clean(grad(slope)(p))};
    };
  }
};

TEST_F(CapturedLengthsTest, BitsDoNotDependOnTheOrderOfLengths) {
  std::vector<int> times{3, 9, 1, 7, 0, 2, 5, 8, 4, 6, 9, 3};
  const std::vector<int> sources{2, 6, 0, 1, 4, 5, 1, 6, 3, 2, 2, 4};
  expect_same_on_threads(everything(), parameters(times, sources));
  std::sort(times.begin(), times.end());
  expect_same_on_threads(everything(), parameters(times, sources));
  expect_same_on_threads(everything(), parameters(times, times));
  std::reverse(times.begin(), times.end());
  expect_same_on_threads(everything(), parameters(times, sources));
}

TEST_F(CapturedLengthsTest, OneRowAndNoLengths) {
  expect_same_on_threads(everything(), parameters({4}, {3}));
  expect_same_on_threads(everything(), parameters({4, 4, 4, 4, 4}, {3, 3, 3, 3, 3}));
  expect_same_on_threads(everything(), parameters({5, 0, 2, 3, 1}, {0, 0, 0, 0, 0}));
  expect_same_on_threads(everything(), parameters({0, 0, 0, 0, 0}, {1, 0, 2, 2, 3}));
}

// Lengths of another call reach the plans of the first one.
TEST_F(CapturedLengthsTest, NewLengthsWithTheSamePlans) {
  const auto f = jit(everything());
  const auto interpreted = jit(everything(), {.executor = Executor::interpreter});
  for (const std::vector<int>& sources :
       std::vector<std::vector<int>>{{2, 5, 0, 1, 4, 5, 1, 3}, {5, 0, 5, 5, 1, 1, 2, 2}}) {
    const Parameters p = parameters({3, 7, 1, 7, 0, 2, 5, 6}, sources);
    const TreeLeaves made = flatten(f(p)), expected = flatten(interpreted(p));
    for (std::size_t i = 0; i < made.size(); ++i)
      expect_all_close(made[i].tensor, expected[i].tensor, 1e-10);
  }
}

/// Returns the body of a loop on some rows, if all its carries, slices and captures have rows but
/// for matrices.
BodyOnRows body_of_blocks(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  const auto formals = body_inputs(attrs);
  const Dim rows = body.types[formals.carries[0]].dims()[0];
  RowAxes axes(body, rows);
  for (const ValueId v : body.inputs)
    if (contains(body.types[v].dims(), rows)) axes.seed(v, 0);
  axes.follow();
  std::vector<int> all;
  for (ValueId v = 0; v < body.types.size(); ++v) all.push_back(axes[v]);
  return body_on_rows(body, all);
}

TEST_F(CapturedLengthsTest, ProductsOfRowsHaveTheirLengths) {
  const Parameters p = parameters({3, 9, 1, 7, 0, 2, 5, 8}, {2, 6, 0, 1, 4, 5, 1, 6});
  const auto f = jit([this](const Parameters& p) { return states(p); });
  f(p);
  const Ref<Graph> graph = optimise_for_plan(f.graph(), {}).graph;
  const auto loop = std::ranges::find_if(
      graph->records, [](const OpRecord& record) { return record.op == &loop_op; });
  ASSERT_NE(loop, graph->records.end());
  const BodyOnRows body = body_of_blocks(get<LoopAttrs>(loop->attrs.get()));
  ASSERT_TRUE(body.graph);
  const std::string names = ops(*body.graph);
  EXPECT_EQ(times_said(names, "unpadded_dot"), 2);  // scores, and the sum of keys
  EXPECT_EQ(times_said(names, "packed_dot"), 1);    // a matrix for all rows
  // Both read the same lengths.
  EXPECT_EQ(std::ranges::count(body.lengths_of, std::string_view("dim_lengths"),
                               [](const OpRecord& record) { return record.op->name; }),
            1);
}

}  // namespace
}  // namespace reel
