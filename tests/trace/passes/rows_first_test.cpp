// Captures with rows behind another axis: graphs after the pass, and loops that plans cut because
// of it.
#include "reel/trace/passes/loop_structure/rows_first.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reel/tests/trace/plan/planned.h"
#include "reel/tests/trace/plan/row_cuts.h"

namespace reel {
namespace {

class RowsFirstTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(21); }

  const Dim hidden{"hidden", 64}, next{"next", 64};

  struct Attended {
    Tensor x, keys, w, h;
  };
  Attended parameters(const std::vector<int>& lengths, const std::vector<int>& sources,
                      bool is_ragged, DType dtype = f64) const {
    const Dim batch("batch", static_cast<std::int64_t>(lengths.size()));
    const auto dim = [&](const char* name, const std::vector<int>& of) {
      return is_ragged ? Dim(name, tensor(of, {batch})) : Dim(name, of[0]);
    };
    const Dim time = dim("time", lengths), source = dim("source", sources);
    return {mask_padding(random_normal({time, batch, hidden}, dtype), NAN),
            mask_padding(random_normal({source, batch, hidden}, dtype), NAN),
            random_normal({hidden, next}, dtype) * 0.1, random_normal({batch, hidden}, dtype)};
  }
  /// Returns the last state of a scan that attends to keys which begin with their time.
  Tensor last(const Attended& p) const {
    const Dim source = p.keys.dim("source");
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor weights = softmax(matmul(p.keys, h, hidden), source);
      const Tensor context = matmul(weights, p.keys, source);
      return std::pair{None{}, tanh(rename(matmul(h + context, p.w, hidden), next, hidden) + x)};
    };
    return scan(Scan{.spatial_dim = p.x.dim("time"), .initial = p.h, .xs = p.x, .body = body})
        .state;
  }
  auto gradient() const {
    return [this](const Attended& p) {
      const Attended g = grad([this](const Attended& p) { return sum(square(last(p))); })(p);
      return std::pair{last(p), Attended{mask_padding(g.x), mask_padding(g.keys), g.w, g.h}};
    };
  }
  auto second_gradient() const {
    return [this](const Attended& p) {
      const auto slope = [this](const Attended& p) {
        const Attended g = grad([this](const Attended& p) { return sum(square(last(p))); })(p);
        return sum(square(g.keys)) + sum(square(g.w)) * 0.01 + sum(g.h);
      };
      const Attended g = grad(slope)(p);
      return Attended{mask_padding(g.x), mask_padding(g.keys), g.w, g.h};
    };
  }
};

TEST_F(RowsFirstTest, TransposesOnceBeforeTheLoop) {
  const Attended p = parameters({3, 3}, {4, 4}, false);
  EXPECT_EQ(ops_behind(
                rows_first, [this](const Attended& p) { return last(p); }, p),
            "full transpose loop{dot softmax dot add dot rename add tanh}");
}

// Other readers than products of one row each would need the capture in its own order.
TEST_F(RowsFirstTest, NotForOtherReaders) {
  const Dim batch("batch", 2), source("source", 3);
  const auto steps = [&](const auto& read) {
    return [=](const Tensor& keys, const Tensor& h) {
      return fori_loop(
          0, 4, [&](const Tensor&, const Tensor& h) { return read(keys, h); }, h);
    };
  };
  const Tensor keys = random_normal({source, batch, hidden}), h = random_normal({batch, hidden});
  const auto product = [&](const Tensor& keys, const Tensor& h) {
    return h + sum(matmul(keys, h, hidden), source) * 0.01;
  };
  const auto also_a_sum = [&](const Tensor& keys, const Tensor& h) {
    return product(keys, h) + sum(keys, source);
  };
  const auto over_rows = [&](const Tensor& keys, const Tensor& h) {
    return h + sum(matmul(keys, h, {batch, hidden})) * 0.01;
  };
  const auto transposes = [&](const auto& f) {
    return ops_behind(rows_first, f, keys, h).find("transpose") != std::string::npos;
  };
  EXPECT_TRUE(transposes(steps(product)));
  EXPECT_FALSE(transposes(steps(also_a_sum)));
  EXPECT_FALSE(transposes(steps(over_rows)));
}

// The rows are last: a product would walk a row of keys with another step, in another order.
TEST_F(RowsFirstTest, NotForRowsThatAreLast) {
  const Dim batch("batch", 2), source("source", 3);
  const auto f = [&](const Tensor& keys, const Tensor& h) {
    const auto step = [&](const Tensor&, const Tensor& h) {
      return h + matmul(matmul(keys, h, hidden), keys, source);
    };
    return fori_loop(0, 3, step, h);
  };
  const Tensor h = random_normal({batch, hidden});
  const auto transposes = [&](const Dims& dims) {
    const std::string ops = ops_behind(rows_first, f, random_normal(dims), h);
    return ops.find("transpose") != std::string::npos;
  };
  EXPECT_FALSE(transposes({source, hidden, batch}));
  EXPECT_TRUE(transposes({hidden, batch, source}));
}

TEST_F(RowsFirstTest, KeepsBits) {
  for (const bool is_ragged : {false, true})
    for (const DType dtype : {f32, f64}) {
      const Attended p = parameters({6, 3, 1, 6, 0, 2, 4, 4, 5, 6, 1, 2},
                                    {5, 5, 4, 1, 2, 7, 3, 3, 1, 2, 6, 7}, is_ragged, dtype);
      const auto f = [this](const Attended& p) { return last(p); };
      expect_same_bits(jit(f)(p), f(p));
      expect_same_without({.cut_rows = false, .shrink_batch = false}, false, gradient(), p);
      expect_same_on_threads(gradient(), p);
      if (dtype == f64) expect_same_on_threads(second_gradient(), p);
    }
}

// A decoder that attends to an encoder's outputs: all its loops run on some rows at a time.
TEST_F(RowsFirstTest, LoopsOverOutputsOfLoopsAreCut) {
  const auto cuts_of = [&](bool is_ragged) {
    std::vector<int> lengths(32), sources(32);
    for (int r = 0; r < 32; ++r) lengths[r] = 1 + r % 8, sources[r] = 1 + r * 5 % 9;
    if (!is_ragged) lengths[0] = 8, sources[0] = 9;
    const auto planned = jit(grad([this](const Attended& p) { return sum(square(last(p))); }),
                             {.passes = {.block_rows = 8}});
    planned(parameters(lengths, sources, is_ragged, f32));
    return times_said(planned.explain(), "  cut: ");
  };
  EXPECT_EQ(cuts_of(false), 2);
  EXPECT_EQ(cuts_of(true), 2);
}

}  // namespace
}  // namespace reel
