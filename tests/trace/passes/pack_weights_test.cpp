// Matrices that loops capture, packed before the loop: graphs after the pass, and comparisons with
// products of unpacked matrices.
#include "reel/trace/passes/hoisting/pack_weights.h"

#include <gtest/gtest.h>

#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/products/packed.h"
#include "reel/reel.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/analysis/row_axes.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

template <class F, class... Args>
std::string packed_ops(const F& f, const Args&... args) {
  return ops_behind([](const Graph& graph) { return pack_weights(graph); }, f, args...);
}

template <class F, class... Args>
void expect_same(const F& f, const Args&... args) {
  expect_same_without({.pack_weights = false}, false, f, args...);
}

/// A scan of h = tanh(h w + x).
Tensor rnn(const Tensor& x, const Tensor& w) {
  return scan(Scan{.initial = zeros(Dims(x.dims().begin() + 1, x.dims().end()), x.dtype()),
                   .xs = x,
                   .body =
                       [&](const Tensor& x, const Tensor& h) {
                         const Tensor next = tanh(matmul(h, w) + x);
                         return std::pair{next, next};
                       }})
      .ys;
}

TEST(PackWeightsTest, PacksOnceBeforeTheLoop) {
  EXPECT_EQ(packed_ops(rnn, zeros({4, 2, 3}), zeros({3, 3})),
            "full full pack loop{packed_dot add tanh}");
}

// A packed product reads the rows or the columns of a matrix. It cannot contract an axis that
// stands between others.
TEST(PackWeightsTest, NotForAnAxisBetweenOthers) {
  const Dim time("time", 3), batch("batch", 3), unit("unit", 160), to("to", 160), head("head", 5);
  manual_seed(3);
  const Tensor x = random_normal({time, batch, unit, head}, f64);
  for (const Dims& dims : {Dims{unit, to}, Dims{to, unit}}) {
    const auto loss = [&](const Tensor& w) {
      const auto step = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = tanh(rename(matmul(h, w, unit), to, unit) * 0.05 + x);
        return std::pair{next, next};
      };
      return sum(square(scan(Scan{.spatial_dim = time,
                                  .initial = zeros({batch, unit, head}, f64),
                                  .xs = x,
                                  .body = step})
                            .ys));
    };
    const Tensor w = random_normal(dims, f64);
    expect_all_close(jit(grad(loss))(w), grad(loss)(w), 1e-10);
  }
}

// A matrix that an inner loop multiplies by may have the state's rows. Row blocks slice it, which
// is impossible once it is packed.
TEST(PackWeightsTest, MatricesWithTheRowsOfTheStateAreNotPacked) {
  const Dim time("time", 2), batch("batch", 32), in("in", 65), hidden("hidden", 128);
  manual_seed(3);
  const Tensor x = random_normal({time, batch, in}, f64);
  for (const bool is_left : {true, false})
    for (const Dims& dims : {Dims{hidden, in}, Dims{in, hidden}}) {
      const auto loss = [&](const Tensor& w) {
        const auto step = [&](const Tensor& x, const Tensor& h) {
          const auto inner = [&](const Tensor& k, const Tensor& z) {
            const Tensor scaled = w * cast(k + 1, f64);
            return tanh(z + (is_left ? matmul(scaled, x, in) : matmul(x, scaled, in)));
          };
          return std::pair{None{}, fori_loop(0, 2, inner, h)};
        };
        return sum(square(scan(Scan{.spatial_dim = time,
                                    .initial = zeros({batch, hidden}, f64),
                                    .xs = x,
                                    .body = step})
                              .state));
      };
      const Tensor w = random_normal(dims, f64) * 0.05;
      for (const bool small : {false, true})
        for (const int block_rows : {0, 4}) {
          const auto f = jit(value_and_grad(loss),
                             {.passes = {.block_rows = block_rows, .pack_small = small}});
          const auto [value, gradient] = f(w);
          const auto [expected, slope] = value_and_grad(loss)(w);
          expect_all_close(value, expected, 1e-10);
          expect_all_close(gradient, slope, 1e-10);
          const bool is_cut = f.explain().find("    cut: ") != std::string::npos;
          EXPECT_TRUE(is_cut || !is_left) << f.explain();  // the other product leaves the loop
        }
    }
}

// The row rules must not treat an axis of a packed matrix as rows, even if one is packed all the
// same.
TEST(PackWeightsTest, APackedMatrixHasNoRows) {
  const Dim batch("batch", 8), in("in", 3), hidden("hidden", 4);
  const auto f = jit([&](const Tensor& w, const Tensor& x) { return matmul(w, x, in); });
  f(zeros({hidden, in}), zeros({batch, in}));
  const auto rows_of_product = [&](const Op& op) {
    Ref<Graph> graph(new Graph(f.graph()));
    graph->records[0].op = &op;
    const ValueId matrix = graph->inputs_of(graph->records[0])[1];
    RowAxes axes(*graph, graph->types[matrix].dims()[0]);
    axes.seed(matrix, 0);
    axes.follow();
    return axes[graph->outputs[0]];
  };
  EXPECT_EQ(rows_of_product(dot_op), 1);
  EXPECT_EQ(rows_of_product(packed_dot_op), RowAxes::kMixed);
}

TEST(PackWeightsTest, SmallOnesForTests) {
  const auto small = [](const Graph& graph) { return pack_weights(graph, Packs::all); };
  EXPECT_EQ(ops_behind(small, rnn, zeros({4, 2, 3}), zeros({3, 3})),
            "full full pack_turned loop{packed_turned_dot add tanh}");
  manual_seed(3);
  // Less than a panel, and panels of each instruction set with and without a rest; forwards, and
  // backwards, where the last axis is contracted.
  for (const std::int64_t width : {1, 3, 7, 16, 21, 64, 131})
    for (const DType dtype : {f32, f64}) {
      const Tensor x = random_normal({4, 2, width}, dtype),
                   w = random_normal({width, width}, dtype);
      const auto f = value_and_grad(
          [](const std::pair<Tensor, Tensor>& p) { return sum(rnn(p.first, p.second)); });
      const auto planned = jit(f, {.executor = Executor::plan, .passes = {.pack_small = true}});
      const auto [value, gradient] = planned(std::pair{x, w});
      const auto [expected, slope] = f(std::pair{x, w});
      const double tolerance = dtype == f64 ? 1e-12 : 1e-5;
      expect_all_close(value, expected, tolerance);
      expect_all_close(gradient.first, slope.first, tolerance);
      expect_all_close(gradient.second, slope.second, tolerance);
      EXPECT_NE(planned.explain().find("  packed: "), std::string::npos) << planned.explain();
    }
}

TEST(PackWeightsTest, OutOfAllLoopsThatTheyAreOutsideOf) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    const auto body = [&](const Tensor& x) { return rnn(x, w); };
    return scan(Scan{.xs = x, .body = body}).ys;
  };
  const std::string made = packed_ops(f, zeros({5, 4, 2, 3}), zeros({3, 3}));
  EXPECT_EQ(made.find("pack "), made.rfind("pack ")) << made;
  EXPECT_LT(made.find("pack "), made.find("loop")) << made;
  manual_seed(1);
  expect_same(f, random_normal({3, 4, 2, 150}), random_normal({150, 150}) * 0.1);
}

TEST(PackWeightsTest, BothWaysOfAGradient) {
  // The forward products contract the first axis, the backward products the last.
  const auto f =
      grad([](const std::pair<Tensor, Tensor>& p) { return sum(rnn(p.first, p.second)); });
  manual_seed(2);
  for (const DType dtype : {f32, f64})
    for (const std::int64_t rows : {1, 2, 7, 40})
      for (const std::int64_t hidden : {3, 64, 129, 150, 200})
        expect_same(f, std::pair{random_normal({4, rows, hidden}, dtype),
                                 random_normal({hidden, hidden}, dtype) * 0.1});
}

TEST(PackWeightsTest, PackedWeightsMayHaveNamedDims) {
  manual_seed(3);
  const Dim time("time", 4), batch("batch", 3), in("in", 200), out("out", 130);
  const Tensor x = random_normal({time, batch, in}), w = random_normal({in, out}) * 0.1;
  const auto f = grad([&](const Tensor& w) {
    const auto body = [&](const Tensor& x_t, const Tensor& s) {
      const Tensor y = tanh(matmul(x_t + matmul(s, w, out) * 0.1, w, in));
      return std::pair{y, y};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = zeros({batch, out}), .xs = x, .body = body}).ys);
  });
  expect_same(f, w);
}

TEST(PackWeightsTest, CarriesAndSlicesAreNotPacked) {
  // A carry and a slice.
  const auto f = [](const Tensor& x, const Tensor& ws) {
    const auto body = [](const Tensor& w, const Tensor& s) {
      return std::pair{None{}, matmul(matmul(s, w), s)};
    };
    return scan(Scan{.initial = x, .xs = ws, .body = body}).state;
  };
  const std::string made = packed_ops(f, zeros({3, 3}), zeros({4, 3, 3}));
  EXPECT_EQ(made.find("pack"), std::string::npos) << made;
}

}  // namespace
}  // namespace reel
