// Products of a cell that stay in its loops: only the products of the recurrence and of its
// gradient. All others, gradients of weights included, are computed over many steps at once.
#include <gtest/gtest.h>

#include "reel/bench/cells.h"
#include "reel/core/ops/products/products.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

/// Counts products by the number of loops around them.
void count_products(const Graph& graph, std::size_t depth, std::vector<int>& counts) {
  counts.resize(std::max(counts.size(), depth + 1));
  for (const OpRecord& record : graph.records) {
    counts[depth] += record.op == &dot_op;
    if (record.op == &loop_op)
      count_products(*get<LoopAttrs>(record.attrs.get()).body.graph, depth + 1, counts);
  }
}

/// Two rows: with eight or more, a product may be as fast in each step, and stays.
class ProductsOfCellsTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 2}, time{"time", 6}, in{"in", 3}, hidden{"hidden", 5};

  /// Expects these numbers of products outside and inside of loops, unchunked, and in chunks at
  /// each depth.
  template <class Cell>
  void expect_products(const Cell& cell, int before_passes, const std::vector<int>& whole,
                       const std::vector<int>& over_chunks) const {
    const Tensor x = random_normal({time, batch, in});
    const auto step = value_and_grad([&](const std::pair<Cell, Tensor>& of) {
      return sum(square(recur(of.first, of.second, time).outputs));
    });
    const auto jitted = jit(step, {.passes = {.chunk_steps = 2}});
    const auto [value, gradient] = jitted(std::pair{cell, x});
    const auto [expected, slope] = step(std::pair{cell, x});
    EXPECT_NEAR(value.template item<float>(), expected.template item<float>(), 1e-4);
    expect_all_close(gradient.first.input_weight, slope.first.input_weight, 1e-4);
    expect_all_close(gradient.first.recurrent_weight, slope.first.recurrent_weight, 1e-4);
    expect_all_close(gradient.second, slope.second, 1e-4);

    const auto products = [&](const Passes* passes) {
      std::vector<int> counts;
      count_products(passes ? *optimise_for_plan(jitted.graph(), *passes).graph : jitted.graph(), 0,
                     counts);
      return counts;
    };
    EXPECT_EQ(products(nullptr), (std::vector<int>{0, before_passes}));
    Passes passes{.chunk_loops = false, .pack_weights = false, .fuse_pointwise = false};
    EXPECT_EQ(products(&passes), whole);
    passes.chunk_loops = true;
    passes.chunk_steps = 2;
    EXPECT_EQ(products(&passes), over_chunks);
  }
};

// The products of the recurrence and of its cotangent stay; x·W and the gradients of W, U and x are
// hoisted.
TEST_F(ProductsOfCellsTest, LstmHoistsAllButItsRecurrence) {
  expect_products(LstmCell::init(in, hidden), 6, {4, 2}, {0, 4, 2});
}
// U is used in two products, and the second waits for the first; their cotangents as well.
TEST_F(ProductsOfCellsTest, GruResetBefore) {
  expect_products(GruCell::init(in, hidden, {.reset_after = false}), 9, {5, 4}, {0, 5, 4});
}
TEST_F(ProductsOfCellsTest, GruResetAfter) {
  expect_products(GruCell::init(in, hidden, {.reset_after = true}), 6, {4, 2}, {0, 4, 2});
}
TEST_F(ProductsOfCellsTest, LstmWithNormalisedLayers) {
  expect_products(bench::LayerNormLstmCell::init(in, hidden), 6, {4, 2}, {0, 4, 2});
}
TEST_F(ProductsOfCellsTest, OneThatAUserMadeUp) {
  expect_products(bench::CustomCell::init(in, hidden), 6, {4, 2}, {0, 4, 2});
}

}  // namespace
}  // namespace reel
