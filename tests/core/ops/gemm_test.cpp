// Products of matrices: layouts, sizes around the kernels' limits, and bits in shares and among
// rows.
#include "reel/core/ops/products/gemm.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <filesystem>
#include <iterator>
#include <utility>

#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/tests/core/ops/product_numbers.h"
#include "reel/tests/modes.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

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
        MatrixSizes s = dense_sizes(m, k, n, turns_a, turns_b);
        s.add = adds;
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

/// Sums that are long enough to be computed in shares, of many rows by a transposed matrix.
TEST(GemmTest, LongSumsByATransposedMatrixAreExact) {
  constexpr std::int64_t kRows = 200, kColumns = 130, kTerms = 4100;
  const Tensor a = numbers({kRows, kTerms}, 1), b = numbers({kTerms, kColumns}, 2);
  const Tensor bt = transpose(b, {1, 0}), made = zeros({kRows, kColumns});
  MatrixSizes s = dense_sizes(kRows, kTerms, kColumns, false, true);
  multiply(f32, s, a.data<void>(), bt.data<void>(), made.data<void>());
  expect_values(made, product(a, b), 0);
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
    const MatrixSizes rows = dense_sizes(11, 37, 45, false, false),
                      runs = dense_sizes(11, 37, 45, false, true);
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
        MatrixSizes s = dense_sizes(m, k, n, turns_a);
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
        MatrixSizes s = dense_sizes(m, k, n, is_transposed);
        s.add = adds;
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
