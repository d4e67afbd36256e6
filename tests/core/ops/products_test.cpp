// Products: layouts, sizes around the kernels' limits, padding and errors. every_op_test.cpp has
// the requirements on all ops.
#include <gtest/gtest.h>
#include <omp.h>

#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/tests/modes.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Returns numbers between -1 and 1 that are multiples of 1/16: sums of a few hundred products are
/// exact in f32.
Tensor numbers(const Dims& dims, int seed, DType dtype = f32) {
  std::int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size();
  std::vector<double> values(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = ((i + seed) * 2654435761u >> 7) % 33 / 16. - 1;
  if (is_integer(dtype))
    for (double& value : values) value *= 16;
  return tensor(values, dims, dtype);
}

std::vector<double> product(const Tensor& a, const Tensor& b) {
  const auto x = values_of(a), y = values_of(b);
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  std::vector<double> result(m * n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t l = 0; l < k; ++l) result[i * n + j] += x[i * k + l] * y[l * n + j];
  return result;
}

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

TEST_P(ProductsTest, SecondDerivative) {
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

// ---- Kernels ------------------------------------------------------------------------------------

/// Every layout of both operands, with sizes on all sides of the limits between kernels.
TEST(GemmTest, AllLayoutsAndSizes) {
  const std::int64_t sizes[][3] = {
      {1, 1, 1},    {1, 7, 1},     {7, 1, 7},      {1, 1, 9},    {2, 3, 4},      {3, 16, 16},
      {5, 17, 33},  {8, 64, 70},   {4, 5, 300},    {2, 40, 260}, {13, 130, 65},  {7, 600, 5},
      {250, 9, 3},  {1, 300, 1},   {300, 40, 1},   {1, 40, 300}, {600, 300, 20}, {300, 600, 70},
      {80, 1, 512}, {17, 4, 1024}, {70, 300, 1024}};
  for (const DType dtype : {f32, f64, i32, i64})
    for (const auto& [m, k, n] : sizes) {
      if (dtype != f32 && m * k > 100000) continue;
      const Tensor a = numbers({m, k}, 1, dtype), b = numbers({k, n}, 2, dtype);
      const std::vector<double> expected = product(a, b);
      const Tensor at = transpose(a, {1, 0}), bt = transpose(b, {1, 0});
      const std::size_t item = size_of(dtype);
      for (int layout = 0; layout < 8; ++layout) {
        const bool turns_a = layout & 1, turns_b = layout & 2, adds = layout & 4;
        SCOPED_TRACE(str(dtype, ' ', m, 'x', k, 'x', n, turns_a ? " aT" : "", turns_b ? " bT" : "",
                         adds ? " +=" : ""));
        std::vector<char> c((m * n) * item, 0);
        const MatrixSizes s{.m = m,
                            .n = n,
                            .k = k,
                            .a_row = turns_a ? 1 : k,
                            .a_step = turns_a ? m : 1,
                            .b_row = turns_b ? 1 : n,
                            .b_step = turns_b ? k : 1,
                            .c_row = n,
                            .add = adds};
        const void *left = (turns_a ? at : a).data<void>(),
                   *right = (turns_b ? bt : b).data<void>();
        multiply(dtype, s, left, right, c.data());
        if (adds) multiply(dtype, s, left, right, c.data());
        Tensor result = zeros({m, n}, dtype);
        std::memcpy(result.data<char>(), c.data(), c.size());
        std::vector<double> twice = expected;
        if (adds)
          for (double& value : twice) value *= 2;
        expect_values(result, twice, 1e-4);
      }
    }
}

TEST(GemmTest, StepsThatAreNowhereOne) {
  // Every second element of every second row, of both operands.
  const Tensor a = numbers({6, 8}, 1), b = numbers({8, 10}, 2);
  float c[3 * 5];
  multiply(f32,
           {.m = 3, .n = 5, .k = 4, .a_row = 16, .a_step = 2, .b_row = 20, .b_step = 2, .c_row = 5},
           a.data<void>(), b.data<void>(), c);
  const auto x = values_of(a), y = values_of(b);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j) {
      double total = 0;
      for (int k = 0; k < 4; ++k) total += x[2 * i * 8 + 2 * k] * y[2 * k * 10 + 2 * j];
      EXPECT_NEAR(c[i * 5 + j], total, 1e-6);
    }
}

/// Runs the loops of every instruction set that this processor has.
TEST(GemmTest, LoopsOfAllInstructionSetsAgree) {
  const ProductTable* const tables[] = REEL_TABLES(products);
  const Tensor a = numbers({11, 37}, 1), b = numbers({37, 45}, 2), bt = transpose(b, {1, 0});
  const Tensor a64 = cast(a, f64), b64 = cast(b, f64), bt64 = cast(bt, f64);
  const std::vector<double> expected = product(a, b);
  for (std::size_t set = 0; set < std::size(tables); ++set) {
    if (!find_pointwise_table(kInstructionSets[set])) continue;
    SCOPED_TRACE(kInstructionSets[set]);
    const ProductTable& table = *tables[set];
    const MatrixSizes rows{
        .m = 11, .n = 45, .k = 37, .a_row = 37, .a_step = 1, .b_row = 45, .b_step = 1, .c_row = 45};
    const MatrixSizes runs{
        .m = 11, .n = 45, .k = 37, .a_row = 37, .a_step = 1, .b_row = 1, .b_step = 37, .c_row = 45};
    Tensor c = zeros({11, 45}), c64 = zeros({11, 45}, f64);
    table.rows_f32(rows, a.data<float>(), b.data<float>(), c.data<float>());
    expect_values(c, expected);
    table.runs_f32(runs, a.data<float>(), bt.data<float>(), c.data<float>());
    expect_values(c, expected);
    table.rows_f64(rows, a64.data<double>(), b64.data<double>(), c64.data<double>());
    expect_values(c64, expected, 1e-12);
    table.runs_f64(runs, a64.data<double>(), bt64.data<double>(), c64.data<double>());
    expect_values(c64, expected, 1e-12);
  }
}

TEST(GemmTest, ARowHasTheSameBitsInAnyNumberOfRows) {
  // Also with few terms, and with rows of w that begin in the same sets of the first-level cache.
  for (const auto& [terms, columns] : {std::pair{200, 300}, {3, 1024}, {300, 1024}}) {
    const Dim in("in", terms), out("out", columns);
    const Tensor w = random_normal({in, out});
    const Dim many("many", 80);
    const Tensor x = random_normal({many, in}), all = matmul(x, w, in);
    for (std::int64_t count : {1, 2, 3, 8, 13, 64}) {
      SCOPED_TRACE(str(count, 'x', terms, 'x', columns));
      const Tensor some = matmul(slice(x, many, 5, 5 + count), w, in);
      expect_same_bits(some, slice(all, many, 5, 5 + count));
    }
  }
}

TEST(GemmTest, LargeProductsAreTheSameOnAnyNumberOfThreads) {
  // Split along the inner size, along the rows, and along the columns.
  const std::int64_t sizes[][3] = {{64, 4200, 70}, {3000, 90, 70}, {70, 90, 3000}};
  const int before = threads();
  for (const DType dtype : {f32, f64, i32})
    for (const auto& [m, k, n] : sizes)
      for (const bool turns_a : {false, true}) {
        SCOPED_TRACE(str(dtype, ' ', m, 'x', k, 'x', n, turns_a ? " aT" : ""));
        const Tensor a = numbers({m, k}, 1, dtype), b = numbers({k, n}, 2, dtype);
        const Tensor left = turns_a ? transpose(a, {1, 0}) : a;
        MatrixSizes s{.m = m,
                      .n = n,
                      .k = k,
                      .a_row = turns_a ? 1 : k,
                      .a_step = turns_a ? m : 1,
                      .b_row = n,
                      .b_step = 1,
                      .c_row = n};
        Tensor results[3];
        for (const int count : {1, 2, 5}) {
          set_threads(count);
          Tensor c = full({m, n}, 7, dtype);
          s.add = false;
          multiply(dtype, s, left.data<void>(), b.data<void>(), c.data<void>());
          s.add = true;
          multiply(dtype, s, left.data<void>(), b.data<void>(), c.data<void>());
          results[count / 2] = c;
        }
        std::vector<double> twice = product(a, b);
        for (double& value : twice) value *= 2;
        expect_values(results[0], twice, dtype == f32 ? 2e-3 : 1e-9);
        expect_same_bits(results[1], results[0]);
        expect_same_bits(results[2], results[0]);
      }
  set_threads(before);
}

// One thread computes these as a whole, others in shares of columns or rows.
TEST(GemmTest, SharesOfLargeProductsHaveTheBitsOfTheWhole) {
  const std::int64_t sizes[][3] = {{500, 700, 1100}, {500, 2100, 1100}, {1100, 600, 1000}};
  const int before = threads();
  for (const auto& [m, k, n] : sizes)
    for (const bool is_transposed : {false, true})
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(str(m, 'x', k, 'x', n, is_transposed ? " aT" : "", adds ? " added" : ""));
        const Tensor a = numbers({m, k}, 1, f32), b = numbers({k, n}, 2, f32);
        const MatrixSizes s{.m = m,
                            .n = n,
                            .k = k,
                            .a_row = is_transposed ? 1 : k,
                            .a_step = is_transposed ? m : 1,
                            .b_row = n,
                            .b_step = 1,
                            .c_row = n,
                            .add = adds};
        Tensor whole;
        for (const int count : {1, 2, 3, 5}) {
          set_threads(count);
          const Tensor c = full({m, n}, 7, f32);
          multiply(f32, s, a.data<void>(), b.data<void>(), c.data<void>());
          if (count == 1) whole = c;
          expect_same_bits(c, whole);
        }
      }
  set_threads(before);
}

TEST(GemmTest, AnInnerSizeOfZeroGivesZeros) {
  expect_values(matmul(zeros({2, 0}), zeros({0, 3})), {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(matmul(zeros({0, 2}), zeros({2, 3})).shape(), (std::vector<std::int64_t>{0, 3}));
  expect_values(matmul(zeros({0}), zeros({0})), {0});
}

// ---- Errors -------------------------------------------------------------------------------------

TEST(ProductsErrorTest, InnerSizes) {
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

TEST(ProductsErrorTest, DTypes) {
  EXPECT_EQ(message_of<DTypeError>([] {
              return matmul(zeros({2, 3}), zeros({3, 4}, f64));
            }),
            "matmul: dtypes differ: lhs f32[2,3], rhs f64[3,4]; cast one of them");
  EXPECT_EQ(message_of<DTypeError>([] { return matmul(zeros({3}, boolean), zeros({3}, boolean)); }),
            "matmul: booleans have no product: lhs boolean[3], rhs boolean[3]; cast them");
}

/// Returns the number of threads of this process.
std::ptrdiff_t threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// Each of the four parts is large enough for oneDNN, which would start OpenMP's threads beside the
// library's.
TEST(GemmTest, ALargeProductStartsNoThreadsAndLeavesThoseOfOpenMPToTheProgram) {
  const Threads one(1);
  const Tensor a = numbers({2048, 512}, 1), b = numbers({512, 256}, 2), row = numbers({1, 512}, 3);
  matmul(row, b);  // starts the library's own threads
  const int before = omp_get_max_threads();
  omp_set_num_threads(4);
  const std::ptrdiff_t running = threads_of_process();
  const Tensor c = matmul(a, b), d = matmul(transpose(b, {1, 0}), transpose(a, {1, 0}));
  EXPECT_EQ(threads_of_process(), running);
  EXPECT_EQ(omp_get_max_threads(), 4);
  omp_set_num_threads(before);
  expect_same_bits(transpose(d, {1, 0}), c);  // the sums are exact
}

}  // namespace
}  // namespace reel
