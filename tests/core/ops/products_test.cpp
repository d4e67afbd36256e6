// Products: dims, padding and errors. every_op_test.cpp has the requirements on all ops.
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/replay.h"
#include "reel/tests/core/ops/product_numbers.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class ProductsTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ProductsTest);

// ---- Named dims ---------------------------------------------------------------------------------

TEST_P(ProductsTest, ContractsADimWhereverItIs) {
  const Dim batch("batch", 2), in("in", 3), out("out", 2);
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {batch, in}, f32),
               w = tensor({1, 0, 0, 1, 1, 1}, {in, out}, f32);
  const std::vector<double> expected = {4, 5, 10, 11};
  expect_values(run([&](Tensor x, Tensor w) { return matmul(x, w, w.dim("in")); })(x, w), expected);
  expect_values(run([&](Tensor x, Tensor w) {
                  return matmul(x, transpose(w, {1, 0}), w.dim("in"));
                })(x, w),
                expected);
  expect_values(run([&](Tensor x, Tensor w) {
                  return matmul(transpose(x, {1, 0}), w, w.dim("in"));
                })(x, w),
                expected);
  EXPECT_EQ(matmul(x, w, in).type(), TensorType(f32, {batch, out}));
  EXPECT_EQ(matmul(w, x, in).type(), TensorType(f32, {out, batch}));
}

TEST_P(ProductsTest, SharedDimsAreBatchDims) {
  const Dim batch("batch", 2), heads("heads", 3), query("query", 4), key("key", 5), size("size", 6);
  const Tensor q = numbers({batch, query, heads, size}, 1),
               k = numbers({batch, key, heads, size}, 2);
  const Tensor scores = run([](Tensor q, Tensor k) { return matmul(q, k, q.dim("size")); })(q, k);
  ASSERT_EQ(scores.shape(), (std::vector<std::int64_t>{2, 3, 4, 5}));
  const auto x = values_of(q), y = values_of(k);
  std::vector<double> expected;
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 3; ++h)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 5; ++j) {
          double total = 0;
          for (int s = 0; s < 6; ++s)
            total += x[((b * 4 + i) * 3 + h) * 6 + s] * y[((b * 5 + j) * 3 + h) * 6 + s];
          expected.push_back(total);
        }
  expect_values(scores, expected);
}

TEST_P(ProductsTest, SeveralContractedDimsInAnyOrder) {
  const Dim a("a", 2), b("b", 3), c("c", 4), d("d", 5);
  const Tensor x = numbers({a, b, c}, 1), y = numbers({c, d, b}, 2);
  const auto f = run([](Tensor x, Tensor y) { return matmul(x, y, {x.dim("b"), x.dim("c")}); });
  const Tensor aligned = transpose(y, {2, 0, 1});
  expect_values(
      f(x, y),
      product(reshape(rename(rename(rename(x, a, Dim("i", 2)), b, Dim("j", 3)), c, Dim("k", 4)),
                      Dims{2, 12}),
              reshape(aligned, Dims{12, 5})));
}

/// Equal terms round alike: of 16,384 in one chain the sum is off by 1.5e-4, of a million by 1e-2.
TEST_P(ProductsTest, LongSumsAreOffByNoMoreThanABlock) {
  const std::int64_t k = 1000000;
  const auto f = run([](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  for (const auto& [m, n] : {std::pair{1, 1}, {1, 2}, {2, 8}, {5, 1}, {8, 2}}) {
    const std::vector<double> expected(static_cast<std::size_t>(m * n), 0.1 * double(k));
    expect_values(f(full({m, k}, 0.1), ones({k, n})), expected, 2e-4);
    const Tensor turned = transpose(full({k, m}, 0.1), {1, 0});
    expect_values(f(turned, transpose(ones({n, k}), {1, 0})), expected, 2e-4);
  }
}

TEST(LongProductsTest, LoseNoTermBeyondTwoToTheTwentyFour) {
  const std::int64_t k = (1 << 24) + 1000;
  expect_values(matmul(ones({1, k}), ones({k, 1})), {double(k)}, 0);
  expect_values(matmul(ones({1, k}), ones({k, 2})), {double(k), double(k)}, 0);
}

// Matrices that leave the second-level cache are multiplied by another kernel than few rows are.
TEST(LargeProductsTest, ManyRowsByWideMatricesHaveTheBitsOfFew) {
  manual_seed(3);
  for (const std::int64_t k : {64, 130, 256}) {
    const Dim inner("inner", k), row("row", 100), column("column", 7000);
    const Tensor a = random_normal({100, k}), b = random_normal({k, 7000}), all = matmul(a, b);
    const Tensor turned = matmul(reshape(transpose(a, {1, 0}), Dims{inner, row}),
                                 reshape(b, Dims{inner, column}), inner);
    expect_same_bits(reshape(turned, Dims{100, 7000}), all);
    for (const std::int64_t rows : {1, 5, 31, 32})
      expect_same_bits(matmul(slice(a, 0, 60, 60 + rows), b), slice(all, 0, 60, 60 + rows));
    expect_same_bits(matmul(a, slice(b, 1, 0, 2000)), slice(all, 1, 0, 2000));
  }
}

TEST_P(ProductsTest, NothingContractedIsTheOuterProduct) {
  const Dim a("a", 2), b("b", 3);
  const auto f = run([](Tensor x, Tensor y) { return matmul(x, y, Dims{}); });
  expect_values(f(tensor({1., 2.}, {a}), tensor({3., 4., 5.}, {b})), {3, 4, 5, 6, 8, 10});
}

// ---- Padding ------------------------------------------------------------------------------------

TEST_P(ProductsTest, PaddingOfContractedDimsDoesNotCount) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), a("a", 1), b("b", 2);
  const Tensor x = tensor({1., 2., 3., kNaN}, {batch, time, a});
  const Tensor y = tensor({1., 2., 3., 4., 5., 6., kNaN, 8.}, {batch, time, b});
  expect_values(run([](Tensor x, Tensor y) { return matmul(x, y, x.dim("time")); })(x, y),
                {7, 10, 15, 18});
  expect_values(run([](Tensor x, Tensor y) {
                  return matmul(x, y, {x.dim("batch"), x.dim("time")});
                })(x, y),
                {22, 28});
  expect_values(run([](Tensor x, Tensor y) { return matmul(x, y, x.dim("batch")); })(x, y),
                {16, 20, 6, 8});
}

TEST_P(ProductsTest, PaddingTakesNoPartInAWeightsGradient) {
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch})), in("in", 2), out("out", 1);
  const Tensor x = tensor({1., 2., 3., 4., 5., 6., kNaN, kNaN}, {batch, time, in}),
               w = tensor({1., -1.}, {in, out});
  const auto loss = [](Tensor w, Tensor x) { return sum(square(matmul(x, w, w.dim("in")))); };
  expect_values(run(grad(loss))(w, x), {-18, -24});
  const Tensor g = run(grad([&](Tensor x, Tensor w) { return loss(w, x); }))(x, w);
  expect_values(mask_padding(g), {-2, 2, -2, 2, -2, 2, 0, 0});
}

// ---- Plain dims ---------------------------------------------------------------------------------

TEST_P(ProductsTest, NumPysRules) {
  const auto f = run([](Tensor a, Tensor b) { return matmul(a, b); });
  const Tensor m = tensor({{1., 2.}, {3., 4.}}), v = tensor({5., 6.});
  expect_values(f(m, m), {7, 10, 15, 22});
  expect_values(f(m, v), {17, 39});
  expect_values(f(v, m), {23, 34});
  expect_values(f(v, v), {61});
  EXPECT_EQ(f(v, v).rank(), 0);
}

TEST_P(ProductsTest, BatchAxesAreBroadcast) {
  const auto f = run([](Tensor a, Tensor b) { return matmul(a, b); });
  const std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> cases = {
      {{5, 2, 3}, {3, 4}},          {{2, 3}, {5, 3, 4}},       {{5, 2, 3}, {5, 3, 4}},
      {{1, 2, 3}, {5, 3, 4}},       {{5, 2, 3}, {1, 3, 4}},    {{6, 1, 2, 3}, {5, 3, 4}},
      {{6, 5, 2, 3}, {5, 3, 4}},    {{5, 2, 3}, {6, 5, 3, 4}}, {{1, 5, 2, 3}, {6, 1, 3, 4}},
      {{6, 1, 2, 3}, {1, 5, 3, 4}}, {{3}, {5, 3, 4}},          {{5, 2, 3}, {3}}};
  for (const auto& [left, right] : cases) {
    const Tensor a = numbers(Dims(left.begin(), left.end()), 1),
                 b = numbers(Dims(right.begin(), right.end()), 2);
    SCOPED_TRACE(str(a.type(), " ", b.type()));
    const Tensor result = f(a, b);
    // Every batch axis written out.
    const std::size_t rank = std::max<std::size_t>(std::max(left.size(), right.size()), 2);
    std::vector<std::int64_t> l = left, r = right;
    if (l.size() == 1) l.insert(l.begin(), 1);
    if (r.size() == 1) r.push_back(1);
    while (l.size() < rank) l.insert(l.begin(), 1);
    while (r.size() < rank) r.insert(r.begin(), 1);
    std::vector<std::int64_t> shape;
    std::vector<double> expected;
    const auto x = values_of(a), y = values_of(b);
    std::int64_t entries = 1;
    for (std::size_t i = 0; i + 2 < rank; ++i)
      shape.push_back(std::max(l[i], r[i])), entries *= shape.back();
    for (std::int64_t entry = 0; entry < entries; ++entry) {
      std::int64_t in_a = 0, in_b = 0, rest = entry, a_step = 1, b_step = 1;
      for (std::size_t i = rank - 2; i-- > 0; rest /= shape[i]) {
        const std::int64_t at = rest % shape[i];
        if (l[i] != 1) in_a += at * a_step;
        if (r[i] != 1) in_b += at * b_step;
        a_step *= l[i], b_step *= r[i];
      }
      const std::int64_t m = l[rank - 2], k = l[rank - 1], n = r[rank - 1];
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double total = 0;
          for (std::int64_t s = 0; s < k; ++s)
            total += x[(in_a * m + i) * k + s] * y[(in_b * k + s) * n + j];
          expected.push_back(total);
        }
    }
    if (left.size() > 1) shape.push_back(l[rank - 2]);
    if (right.size() > 1) shape.push_back(r[rank - 1]);
    EXPECT_EQ(result.shape(), shape);
    expect_values(result, expected);
  }
}

TEST_P(ProductsTest, GradientsOfBroadcastOperandsAreSummed) {
  const Tensor a = numbers({2, 3}, 1, f64), b = numbers({4, 3, 2}, 2, f64);
  const auto loss = [](Tensor a, Tensor b) { return sum(square(matmul(a, b))); };
  const Tensor g = run(grad(loss))(a, b);
  Tensor expected = zeros({2, 3}, f64);
  for (int i = 0; i < 4; ++i)
    expected = expected + grad(loss)(a, reshape(slice(b, 0, i, i + 1), {3, 2}));
  expect_all_close(g, expected, 1e-12);
}

TEST_P(ProductsTest, SecondDerivativeOfAProductIsItsFormula) {
  const Tensor a = numbers({3, 4}, 1, f64), b = numbers({4, 2}, 2, f64);
  // f(a) = |a b|². Its gradient is 2 a b bᵀ, and the gradient of the squared gradient's sum is 8 a
  // (b bᵀ)².
  const auto first = grad([](Tensor a, Tensor b) { return sum(square(matmul(a, b))); });
  const Tensor second =
      run(grad([first](Tensor a, Tensor b) { return sum(square(first(a, b))); }))(a, b);
  const Tensor square_of_b = matmul(b, transpose(b, {1, 0}));
  expect_all_close(second, matmul(matmul(a, square_of_b), square_of_b) * 8.0, 1e-12);
}

TEST(ProductsTypeTest, PlainSizesThatATraceDoesNotKnow) {
  const auto loss = [](Tensor a, Tensor b) { return sum(square(matmul(a, b))); };
  Ref<Graph> graph;
  {
    GraphBuilder builder("f");
    ModeScope scope(builder.scope());
    const Tensor a = builder.add_input(TensorType(f64, {Dim::unknown(), Dim::unknown()}));
    const Tensor b = builder.add_input(TensorType(f64, {Dim::unknown(), Dim::unknown()}));
    graph = builder.finish(
        {grad(loss)(a, b), grad([&](Tensor b, Tensor a) { return loss(a, b); })(b, a)});
  }
  verify(*graph, "recording");
  const Tensor inputs[] = {numbers({3, 4}, 1, f64), numbers({4, 2}, 2, f64)};
  DimEnv env;
  const Tensors gradients = replay(*graph, inputs, env);
  expect_all_close(gradients[0],
                   matmul(matmul(inputs[0], inputs[1]), transpose(inputs[1], {1, 0})) * 2.0, 1e-12);
  expect_all_close(gradients[1],
                   matmul(transpose(inputs[0], {1, 0}), matmul(inputs[0], inputs[1])) * 2.0, 1e-12);
  const Tensor wrong[] = {inputs[0], inputs[0]};
  EXPECT_EQ(message_of<ShapeError>([&] {
              DimEnv other;
              return replay(*graph, wrong, other);
            }),
            "matmul: inner sizes differ: lhs f64[3,4] has 4 columns, rhs f64[3,4] has 3 rows; if "
            "its columns are meant, transpose it: transpose(rhs, {1, 0})");
}

// ---- Errors -------------------------------------------------------------------------------------

TEST(ProductsErrorTest, ErrorsNameTheInnerSizes) {
  EXPECT_EQ(message_of<ShapeError>([] {
              return matmul(zeros({8, 3}), zeros({4, 5}));
            }),
            "matmul: inner sizes differ: lhs f32[8,3] has 3 columns, rhs f32[4,5] has 4 rows");
  EXPECT_EQ(message_of<ShapeError>([] {
              return matmul(zeros({3}), zeros({4, 5}));
            }),
            "matmul: inner sizes differ: lhs f32[3] has 3 elements, rhs f32[4,5] has 4 rows");
  EXPECT_EQ(message_of<ShapeError>([] {
              return matmul(zeros({2, 8, 3}), zeros({5, 3, 4}));
            }),
            "matmul: batch sizes differ: lhs f32[2,8,3] has 2 along axis 0, rhs f32[5,3,4] has 5 "
            "along axis 0");
  EXPECT_EQ(message_of<ShapeError>([] { return matmul(scalar(1.0), zeros({3})); }),
            "matmul: lhs f32[], rhs f32[3]: a scalar has no axis to contract; use *");
}

TEST(ProductsErrorTest, DimsToContract) {
  const Dim batch("batch", 3), feature("feature", 4), other("other", 4), twin("feature", 4);
  const Tensor x = zeros({batch, feature});
  EXPECT_EQ(message_of<ShapeError>([&] {
              return matmul(x, zeros({other, batch}), feature);
            }),
            "matmul: rhs f32[other=4,batch=3] has no dim feature=4 to contract with lhs "
            "f32[batch=3,feature=4]");
  EXPECT_EQ(
      message_of<ShapeError>([&] { return matmul(zeros({other}), x, feature); }),
      "matmul: lhs f32[other=4] has no dim feature=4 to contract with rhs f32[batch=3,feature=4]");
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        return matmul(x, zeros({twin, other}), feature);
      }),
      "matmul: rhs f32[feature=4,other=4] has no dim feature=4 to contract with lhs "
      "f32[batch=3,feature=4]; the two called feature are not one Dim: use one Dim for both, as "
      "x.dim(\"feature\") gives it");
  EXPECT_EQ(message_of<ArgumentError>([&] { return matmul(x, x); }),
            "matmul: lhs f32[batch=3,feature=4], rhs f32[batch=3,feature=4]: with named dims, say "
            "which to contract, as in "
            "matmul(a, b, dim)");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return matmul(x, x, {feature, feature});
            }),
            "matmul: dim feature=4 is to be contracted twice");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return matmul(ones({2, 3}), ones({Dim("in", 3)}));
            }),
            "matmul: named and plain dims meet: lhs f32[2,3], rhs f32[in=3]; name the dims of "
            "both, as in reshape(x, {dim, ...}), and say which to contract: matmul(a, b, dim)");
}

TEST(ProductsErrorTest, ErrorsNameTheDTypes) {
  EXPECT_EQ(message_of<DTypeError>([] {
              return matmul(zeros({2, 3}), zeros({3, 4}, f64));
            }),
            "matmul: dtypes differ: lhs f32[2,3], rhs f64[3,4]; cast one of them");
  EXPECT_EQ(message_of<DTypeError>([] { return matmul(zeros({3}, boolean), zeros({3}, boolean)); }),
            "matmul: booleans have no product: lhs boolean[3], rhs boolean[3]; cast them");
}

}  // namespace
}  // namespace reel
