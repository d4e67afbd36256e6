// Fusion of element-wise ops: graphs after the pass, and the same bits as unfused ops.
#include "reel/trace/passes/fusion/fuse_pointwise.h"

#include <gtest/gtest.h>

#include <array>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/reel.h"
#include "reel/tests/trace/passes/fused_ops.h"
#include "reel/trace/passes/pipeline.h"

namespace reel {
namespace {

class FusePointwiseTest : public ::testing::Test {
 protected:
  void SetUp() override { manual_seed(7); }
};

TEST_F(FusePointwiseTest, MakesOneOpOfAChain) {
  const auto f = [](Tensor x, Tensor y) { return sigmoid(x + y) * y; };
  EXPECT_EQ(fused_ops(f, zeros({3}), zeros({3})), "fused[add sigmoid mul]");
  expect_same(f, random_normal({3}), random_normal({3}));
}

TEST_F(FusePointwiseTest, LeavesOneOpAlone) {
  EXPECT_EQ(fused_ops([](Tensor x) { return tanh(x); }, zeros({3})), "tanh");
}

TEST_F(FusePointwiseTest, OneOpReadsRepeatedOperands) {
  const auto f = grad([](Tensor x, Tensor y) { return sum(square(sum(tanh(x), 1)) * y); });
  EXPECT_EQ(fused_ops(f, zeros({2, 3}), zeros({2})),
            "full fused[tanh sum spread mul add mul spread tanh_grad]");
  for (const std::int64_t columns : {1, 3, 300})
    expect_same(f, random_normal({5, columns}), random_normal({5}));
}

TEST_F(FusePointwiseTest, StopsAtOpsThatAreNotElementWise) {
  // The product stands between: its reader cannot be fused with its operand.
  const auto f = [](Tensor x, Tensor w) {
    const Tensor y = tanh(x + 1.);
    return y * sigmoid(matmul(y, w));
  };
  EXPECT_EQ(fused_ops(f, zeros({2, 2}), zeros({2, 2})),
            "full fused[add tanh] dot fused[sigmoid mul]");
  expect_same(f, random_normal({2, 2}), random_normal({2, 2}));
}

// Compilers order the operands of an operator as they like. Where a test knows the order of the
// graph's ops, each op has a statement.

/// parts: of the gates.
Tensor lstm_cell(const std::array<Tensor, 4>& parts, const Tensor& c) {
  const auto& [i, f, g, o] = parts;
  const Tensor content = tanh(g);
  const Tensor added = sigmoid(i) * content;
  const Tensor next = sigmoid(f) * c + added;
  const Tensor seen = tanh(next);
  return sigmoid(o) * seen;
}

TEST_F(FusePointwiseTest, TakesSplitsAndBroadcastOperandsIn) {
  const auto f = [](Tensor a, Tensor b, Tensor bias, Tensor c) {
    return lstm_cell(split<4>(a + b + bias, 1), c);
  };
  EXPECT_EQ(fused_ops(f, zeros({2, 12}), zeros({2, 12}), zeros({12}), zeros({2, 3})),
            "fused[add add split tanh sigmoid mul sigmoid mul add tanh sigmoid mul]");
  for (const std::int64_t batch : {1, 2, 5})
    for (const std::int64_t hidden : {1, 3, 16, 17, 129, 700})
      expect_same(f, random_normal({batch, 4 * hidden}), random_normal({batch, 4 * hidden}),
                  random_normal({4 * hidden}), random_normal({batch, hidden}));
}

TEST_F(FusePointwiseTest, TakesConcatsIn) {
  // The gradient of lstm_cell concatenates the gates' cotangents.
  const auto f = grad([](Tensor gates, Tensor c) { return sum(lstm_cell(split<4>(gates, 1), c)); });
  EXPECT_EQ(fused_ops(f, zeros({3, 20}, f64), zeros({3, 5}, f64)),
            "full fused[split tanh sigmoid mul sigmoid mul add tanh sigmoid spread mul mul "
            "sigmoid_grad tanh_grad mul sigmoid_grad mul mul sigmoid_grad tanh_grad concat]");
  for (const std::int64_t hidden : {1, 5, 64, 300})
    expect_same(f, random_normal({3, 4 * hidden}, f64), random_normal({3, hidden}, f64));
}

TEST_F(FusePointwiseTest, ConcatsOfValuesFromOutsideAreCopied) {
  const auto f = [](Tensor x, Tensor y) {
    const Tensor z = exp(x) + x;
    return std::tuple{concat({z, y, z}, 1) * 2., concat({y, z}, 0), z};
  };
  EXPECT_EQ(fused_ops(f, zeros({3, 4}), zeros({3, 4})), "full fused[exp add concat mul] concat");
  expect_same(f, random_normal({3, 4}), random_normal({3, 4}));
}

TEST_F(FusePointwiseTest, SplitPartsMayBeReadOutside) {
  const auto f = [](Tensor x, Tensor w) {
    auto [a, b] = split<2>(x * 2. + 1., 1);
    return std::tuple{matmul(a, w), a, tanh(b) * a, concat({b * b, a}, 1) - x};
  };
  EXPECT_EQ(fused_ops(f, zeros({3, 8}), zeros({4, 4})),
            "full full fused[mul add split tanh mul mul concat sub] dot");
  expect_same(f, random_normal({3, 8}), random_normal({4, 4}));
}

TEST_F(FusePointwiseTest, SplitPartsAreJoinedToSeveralSizes) {
  // A GRU's gradient concatenates two gates for one product, and all three for another.
  const auto f = [](Tensor gates, Tensor x) {
    auto [r, z, n] = split<3>(gates, 1);
    const Tensor a = exp(r) * x, b = tanh(z) - x;
    const Tensor both = concat({a, b}, 1);
    return std::tuple{both * 0.5, concat({a, b, n}, 1) + gates, concat({b, n, b, x}, 1), both};
  };
  EXPECT_EQ(fused_ops(f, zeros({2, 12}), zeros({2, 4})),
            "full fused[split exp mul tanh sub concat mul concat add concat]");
  for (const std::int64_t batch : {1, 2, 5})
    for (const std::int64_t hidden : {1, 3, 16, 129, 700})
      expect_same(f, random_normal({batch, 3 * hidden}), random_normal({batch, hidden}));
  // A concat along another axis stays outside of the fused op.
  const auto across = [](Tensor x, Tensor y) {
    const Tensor z = exp(x) + y;
    return std::tuple{concat({z, x}, 0), concat({z, y, x}, 1)};
  };
  EXPECT_EQ(fused_ops(across, zeros({3, 4}), zeros({3, 4})), "fused[exp add concat] concat");
  expect_same(across, random_normal({3, 4}), random_normal({3, 4}));
}

TEST_F(FusePointwiseTest, ReadersOfTheSameElementsAreOne) {
  const auto f = [](Tensor x, Tensor y, Tensor w) {
    const Tensor z = matmul(x, w);
    return std::tuple{x * y, tanh(z) * x};
  };
  EXPECT_EQ(fused_ops(f, zeros({3, 4}), zeros({3, 4}), zeros({4, 4})), "dot fused[mul tanh mul]");
  expect_same(f, random_normal({3, 4}), random_normal({3, 4}), random_normal({4, 4}));
  // Two readers of x are not fused if a product makes one wait for the other.
  const auto waits = [](Tensor x, Tensor y, Tensor w) { return matmul(x * y, w) + x; };
  EXPECT_EQ(fused_ops(waits, zeros({3, 4}), zeros({3, 4}), zeros({4, 4})), "mul dot add");
  // Nor are two readers of one tensor that compute different elements.
  const auto differ = [](Tensor bias, Tensor x) { return std::tuple{exp(bias), x + bias}; };
  EXPECT_EQ(fused_ops(differ, zeros({4}), zeros({3, 4})), "exp add");
}

TEST_F(FusePointwiseTest, SplitPartsOfOneElementRepeatAlongTheWhole) {
  // A part meets the tensor that it is a part of, and values computed from that tensor.
  const auto f = [](Tensor x) {
    const Tensor y = exp(x) + 1.;
    auto [a, b, c] = split<3>(y, 1);
    const Tensor part = tanh(a) * b;
    return std::tuple{y * part + sum(c), concat({part, a, c}, 1) - part};
  };
  EXPECT_EQ(fused_ops(f, zeros({4, 3})),
            "full fused[exp add split tanh mul mul concat sub] sum add");
  expect_same(f, random_normal({4, 3}));
  expect_same(f, random_normal({1, 3}));
  expect_same(grad([&](Tensor x) { return sum(std::get<0>(f(x)) * std::get<1>(f(x))); }),
              random_normal({4, 3}, f64));
}

TEST_F(FusePointwiseTest, AxesOfOneElement) {
  const auto f = [](Tensor x, Tensor y, Tensor z) { return exp(x + y) * z - x; };
  for (const Dims& dims : {Dims{4, 1, 3}, Dims{1, 1, 1}, Dims{1, 5, 1}, Dims{4, 5, 1}}) {
    const std::int64_t rows = dims[1].size(), columns = dims[2].size();
    EXPECT_EQ(fused_ops(f, zeros(dims), zeros({rows, columns}), zeros({4, 5, 3})),
              "fused[add exp] fused[mul sub]");
    expect_same(f, random_normal(dims), random_normal({rows, columns}), random_normal({4, 5, 3}));
    expect_same(f, random_normal({4, 5, 3}), random_normal(dims), random_normal({rows, 1}));
  }
}

TEST_F(FusePointwiseTest, OperandsThatRepeatAlongColumns) {
  const auto f = [](Tensor mask, Tensor x, Tensor scale) {
    return where(mask, tanh(x * scale), scale + scale * 0.5) * scale;
  };
  const Dim batch("batch", 5), time("time", 3), hidden("hidden", 40);
  const Tensor mask = random_normal({batch}) > 0.;
  EXPECT_EQ(fused_ops(f, mask, zeros({batch, hidden}), zeros({batch})),
            "full fused[mul add] fused[mul tanh where mul]");
  EXPECT_EQ(fused_ops(f, mask, zeros({batch, time, hidden}), zeros({batch, hidden})),
            "full fused[mul add] fused[mul tanh where mul]");
  EXPECT_EQ(fused_ops(f, mask, zeros({time, hidden, batch}), zeros({batch})),
            "full fused[mul add] fused[mul tanh where mul]");
  expect_same(f, mask, random_normal({batch, hidden}), random_normal({batch}));
  expect_same(f, mask, random_normal({time, batch, hidden}), random_normal({batch}));
  expect_same(f, mask, random_normal({batch, time, hidden}), random_normal({batch, hidden}));
  expect_same(f, mask, random_normal({time, hidden, batch}), random_normal({batch}));
}

TEST_F(FusePointwiseTest, DimsInAnotherOrderStayApart) {
  const Dim a("a", 3), b("b", 4);
  const auto f = [](Tensor x, Tensor y) { return tanh(exp(x) + y); };
  EXPECT_EQ(fused_ops(f, zeros({a, b}), zeros({b, a})), "exp add tanh");
  expect_same(f, random_normal({a, b}), random_normal({b, a}));
}

TEST_F(FusePointwiseTest, OpsOnOtherDTypesAreFused) {
  const auto f = [](Tensor x, Tensor n) {
    const Tensor big = n > 2, rounded = cast(x * 10., i32);
    const Tensor less = n - 1, product = rounded * n, both = big && rounded > 0;
    return std::tuple{where(both, product, less), cast(rounded, f64) / 3., cast(big, f32) + x,
                      logical_not(big)};
  };
  EXPECT_EQ(fused_ops(f, zeros({7}), zeros({7}, i32)),
            "full full full full full fused[greater mul cast sub mul greater logical_and where "
            "cast div cast add logical_not]");
  expect_same(f, random_normal({700}), cast(random_normal({700}) * 5., i32));
}

// ---- Sums over rows -----------------------------------------------------------------------------

/// Returns (x - mean) / deviation over the last axis, plain or named.
Tensor normed(const Tensor& x) {
  const Axes last(std::vector<Axis>{x.rank() - 1});
  const Keep keep = x.type().is_named() ? Keep::no : Keep::yes;
  const Tensor centred = x - mean(x, last, keep);
  return centred / sqrt(mean(square(centred), last, keep) + 1e-5);
}

TEST_F(FusePointwiseTest, SumsOverRowsAreDoneWithTheRows) {
  const Dim batch("batch", 5), time("time", 3), hidden("hidden", 40);
  EXPECT_EQ(fused_ops(normed, zeros({batch, hidden})),
            "full full fused[sum div sub square sum div add sqrt div]");
  for (const Dims& dims :
       {Dims{batch, hidden}, Dims{batch, time, hidden}, Dims{Dim("one", 1), hidden},
        Dims{batch, Dim("long", 2000)}, Dims{Dim("none", 0), hidden}}) {
    expect_same(normed, random_normal(dims));
    expect_same(normed, random_normal(dims, f64));
    expect_same(grad([](Tensor x) { return sum(square(normed(x * x) * 0.5 + x)); }),
                random_normal(dims));
  }
}

TEST_F(FusePointwiseTest, SumsOverRowsThatKeepAnAxis) {
  for (const Dims& dims :
       {Dims{5, 40}, Dims{2, 3, 700}, Dims{1, 2}, Dims{7, 1, 16}, Dims{16, 16}}) {
    EXPECT_EQ(fused_ops(normed, zeros(dims)),
              "full full fused[sum div spread sub square sum div spread add sqrt div]")
        << dims;
    expect_same(normed, random_normal(dims));
    expect_same(grad([](Tensor x) { return sum(square(normed(x * x) * 0.5 + x)); }),
                random_normal(dims));
  }
}

// A value per row is combined with operands that have a value per row, or per some of the row dims.
TEST_F(FusePointwiseTest, FusesOpsOnSumsOverRows) {
  const Dim batch("batch", 6), time("time", 3), hidden("hidden", 100);
  const auto f = [&](Tensor x, Tensor per_row, Tensor per_batch, Tensor one) {
    const Tensor total = sum(tanh(x), hidden);
    const Tensor less = per_row - one, product = total * per_batch;
    const Tensor few = where(total > per_row, product, less) * one;
    return std::tuple{few, total, x * few + per_batch, sum(x * few, hidden) + few};
  };
  EXPECT_EQ(
      fused_ops(f, zeros({batch, time, hidden}), zeros({batch, time}), zeros({batch}), scalar(1.f)),
      "fused[tanh sum sub mul greater where mul mul add sum add]");
  expect_same(f, random_normal({batch, time, hidden}), random_normal({batch, time}),
              random_normal({batch}), random_normal({}));
  expect_same(grad([&](Tensor x, Tensor a, Tensor b, Tensor c) {
                const auto [p, q, r, s] = f(x, a, b, c);
                return sum(p * q) + sum(r * x) + sum(square(s));
              }),
              random_normal({batch, time, hidden}), random_normal({batch, time}),
              random_normal({batch}), random_normal({}));
}

// Rows of few elements, with an operand that repeats after two rows: tiles would be that small.
TEST_F(FusePointwiseTest, SumsMayStandBesideOperandsThatRepeatAfterFewRows) {
  const Dim batch("batch", 7), hidden("hidden", 8);
  const auto f = [&](Tensor x, Tensor scale) { return sum(tanh(x) * scale, hidden); };
  const auto fused = [&](std::int64_t rows, const Dims& of_scale) {
    const Dim group("group", rows);
    Dims dims = of_scale;
    for (Dim& dim : dims)
      if (dim == Dim(0)) dim = group;
    return fused_ops(f, zeros({batch, group, hidden}), zeros(dims));
  };
  for (const Dims& dims : {Dims{batch}, Dims{Dim(0)}, Dims{Dim(0), hidden}}) {
    EXPECT_EQ(fused(2, dims), "fused[tanh mul] sum") << dims;
    EXPECT_EQ(fused(32, dims), "fused[tanh mul sum]") << dims;
  }
  for (const Dims& dims : {Dims{batch, Dim(0)}, Dims{hidden}, Dims{}})
    EXPECT_EQ(fused(2, dims), "fused[tanh mul sum]") << dims;
}

// Many ops on one number per row: the fused op takes enough rows at a time to make vectors
// worthwhile.
TEST_F(FusePointwiseTest, ManyStepsOnANumberForEachRow) {
  const Dim batch("batch", 70), hidden("hidden", 300);
  const auto f = [&](Tensor x) {
    Tensor s = sum(x, hidden);
    for (int i = 0; i < 10; ++i) s = tanh(sqrt(s * s + 1.) - s);
    return x * s;
  };
  expect_same(f, random_normal({batch, hidden}));
  expect_same(grad([&](Tensor x) { return sum(f(x)); }), random_normal({batch, hidden}));
}

TEST_F(FusePointwiseTest, SumsOverRowsOfSplitPartsAreFused) {
  const auto f = [](Tensor gates, Tensor c) {
    auto [a, b, d] = split<3>(gates, 1);
    const Tensor next = sigmoid(a) * c + b;
    return std::pair{tanh(normed(next)) * d, next};
  };
  EXPECT_EQ(fused_ops(f, zeros({4, 60}), zeros({4, 20})),
            "full full fused[split sigmoid mul add sum div spread sub square sum div spread add "
            "sqrt div tanh mul]");
  for (const std::int64_t rows : {1, 4, 50})
    for (const std::int64_t hidden : {1, 2, 20, 300}) {
      expect_same(f, random_normal({rows, 3 * hidden}), random_normal({rows, hidden}));
      expect_same(grad([&](Tensor gates, Tensor c) {
                    const auto [y, next] = f(gates, c);
                    return sum(y * y) + sum(next);
                  }),
                  random_normal({rows, 3 * hidden}), random_normal({rows, hidden}));
    }
}

// A vector as long as the number of rows must not be taken for a value per row.
TEST_F(FusePointwiseTest, SumsOverTheRowsOfSquares) {
  const auto f = [](Tensor x, Tensor y) {
    const Tensor scale = exp(y), total = sum(x * scale, 1);
    return std::pair{x * scale + tanh(scale), total * scale};
  };
  expect_same(f, random_normal({8, 8}), random_normal({8}));
}

// A reader of a sum over a whole row, or an operand of one, is fused with the whole instead of with
// its parts.
TEST_F(FusePointwiseTest, SumsOverRowsOfTheWhole) {
  const auto dims_of = [](std::int64_t size) {
    return std::pair{Dim("hidden", size), Dim("gate", 4 * size)};
  };
  const auto f = [](const Dim& hidden, const Dim& gate) {
    return grad([=](Tensor x, Tensor c) {
      return sum(lstm_cell(split<4>(normed(x) * 0.5 + x, gate, hidden), c));
    });
  };
  const Dim batch("batch", 3);
  const auto [hidden, gate] = dims_of(5);
  EXPECT_EQ(fused_ops(f(hidden, gate), zeros({batch, gate}), zeros({batch, hidden})),
            "full full full full fused[sum div sub square sum div add sqrt div mul add add] "
            "fused[split tanh sigmoid mul sigmoid mul add tanh sigmoid spread mul mul sigmoid_grad "
            "tanh_grad mul sigmoid_grad mul mul sigmoid_grad tanh_grad concat] fused[mul div mul "
            "sum neg mul div div spread mul add add sum neg div spread add]");
  for (const std::int64_t size : {1, 5, 64, 300}) {
    const auto [hidden, gate] = dims_of(size);
    expect_same(f(hidden, gate), random_normal({batch, gate}), random_normal({batch, hidden}));
  }
}

TEST_F(FusePointwiseTest, SumsOverTheEntriesOfALoop) {
  const Dim batch("batch", 40), feature("feature", 3), time("time", 6);
  const auto f = [&](Tensor x, Tensor w) {
    const auto body = [&](Tensor x, Tensor h) {
      const Tensor both = tanh(w * h + x);
      const Tensor total = sum(exp(both) * w, batch);
      return std::pair{total, tanh(h + sum(both, feature))};
    };
    return scan(Scan{.spatial_dim = time, .initial = zeros({batch}), .xs = x, .body = body}).ys;
  };
  EXPECT_EQ(fused_ops(f, zeros({time, batch}), zeros({feature, batch})),
            "full full loop{fused[mul add tanh exp mul sum] sum fused[add tanh]}");
  expect_same(f, random_normal({time, batch}), random_normal({feature, batch}));
  expect_same(grad([&](Tensor x, Tensor w) { return sum(square(f(x, w))); }),
              random_normal({time, batch}), random_normal({feature, batch}));
}

TEST_F(FusePointwiseTest, SumsThatStayAlone) {
  const Dim batch("batch", 5), hidden("hidden", 40);
  const auto over = [&](const Axes& axes) {
    return [axes](Tensor x) { return tanh(sum(exp(x), axes)); };
  };
  EXPECT_EQ(fused_ops(over(batch), zeros({batch, hidden})), "exp sum tanh");
  EXPECT_EQ(fused_ops(over({batch, hidden}), zeros({batch, hidden})), "exp sum tanh");
  EXPECT_EQ(fused_ops(over(hidden), zeros({hidden})), "exp sum tanh");
  EXPECT_EQ(fused_ops(over(hidden), cast(zeros({batch, hidden}), f32)), "fused[exp sum tanh]");
  const Dim most("most", 2048), more("more", 2049), one("one", 1);
  EXPECT_EQ(fused_ops(over(most), zeros({batch, most})), "fused[exp sum tanh]");
  EXPECT_EQ(fused_ops(over(more), zeros({batch, more})), "exp sum tanh");
  EXPECT_EQ(fused_ops(over(one), zeros({batch, one})), "exp sum tanh");
}

TEST_F(FusePointwiseTest, EmptyTensorsAreFused) {
  const auto f = [](Tensor x, Tensor c) { return lstm_cell(split<4>(x + 1., 1), c); };
  expect_same(f, zeros({0, 12}), zeros({0, 3}));
  expect_same(f, zeros({3, 0}), zeros({3, 0}));
}

TEST_F(FusePointwiseTest, DimsAreKnownBeforeTheyAreRead) {
  // The number of iterations of the first loop is a dim of the second loop's operands.
  const auto f = [](Tensor x) {
    const auto first = scan(Scan{.spatial_dim = Dim("steps"),
                                 .initial = x,
                                 .cond = [](const Tensor& s) { return s < 10.; },
                                 .body =
                                     [](const Tensor& s) {
                                       return std::pair{s * 2., s * 2. + 1.};
                                     }});
    const Tensor ys = tanh(first.ys) + first.state;
    return sum(ys * exp(ys), first.dim);
  };
  EXPECT_EQ(fused_ops(f, scalar(1., f64)),
            "loop{full full full fused[mul mul add]} fused[tanh add exp mul] sum");
  expect_same(f, scalar(1., f64));
}

TEST_F(FusePointwiseTest, OpsInLoopsAndBranchesAreFused) {
  const auto f = [](Tensor x) {
    const auto body = [](Tensor x, Tensor s) {
      const Tensor next = cond(
          sum(s) > 0., [&] { return tanh(s) * x; }, [&] { return exp(x) - s; });
      return std::pair{next + x, next};
    };
    return scan(Scan{.initial = zeros({3}), .xs = x, .body = body}).ys;
  };
  EXPECT_EQ(fused_ops(f, zeros({5, 3})),
            "full full loop{sum full greater cond{fused[tanh mul]}{fused[exp sub]} add}");
  expect_same(f, random_normal({5, 3}));
  expect_same(grad([&](Tensor x) { return sum(f(x)); }), random_normal({5, 3}));
}

// The pass takes windows of a thousand records. Later windows read results of earlier ones.
TEST_F(FusePointwiseTest, UnrolledLoopIsFusedWindowByWindow) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    Tensor h = x, early = tanh(x), total = x * 0.f;
    for (int i = 0; i < 500; ++i) {
      if (i % 300 == 150) h = matmul(h, w);
      const auto parts = split<2>(h + early, 1);
      total = total + concat({tanh(parts[1]), parts[0] * 0.5f}, 1);
      h = sigmoid(h) * x + 0.1f;
      if (i % 200 == 7) early = early * h;
    }
    return total * early + h;
  };
  const std::string ops = fused_ops(f, zeros({4, 6}), zeros({6, 6}));
  std::size_t fused = 0;
  for (std::size_t at = ops.find("fused["); at != std::string::npos;
       at = ops.find("fused[", at + 1))
    ++fused;
  EXPECT_GE(fused, 4u);  // 4,000 records
  EXPECT_LE(fused, 30u);
  expect_same(f, random_normal({4, 6}), random_normal({6, 6}) * 0.1f);
  expect_same(grad([&](const Tensor& x, const Tensor& w) { return sum(f(x, w)); }),
              random_normal({4, 6}), random_normal({6, 6}) * 0.1f);
}

TEST_F(FusePointwiseTest, TheInterpreterRunsFusedOps) {
  const auto f = [](const Tensor& x, const Tensor& y) { return sigmoid(x + y) * y; };
  const TensorType type(f32, {3});
  const RecordedGraph recorded =
      record_graph("f", {type, type}, [&](const Tensors& in) { return Tensors{f(in[0], in[1])}; });
  const Tensors inputs{random_normal({3}), random_normal({3})};
  DimEnv env;
  expect_same_bits(replay(*fuse_pointwise(*recorded.graph), inputs, env)[0],
                   f(inputs[0], inputs[1]));
}

}  // namespace
}  // namespace reel
