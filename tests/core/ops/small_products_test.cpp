// Small products with a loop of their own: the bits of the loops for all sizes in all layouts.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <utility>

#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/tests/check.h"
#include "reel/tests/core/ops/product_numbers.h"

namespace reel {
namespace {

MatrixSizes sizes_of(std::int64_t m, std::int64_t k, std::int64_t n, int layout) {
  return dense_sizes(m, k, n, layout & 1, layout & 2);
}

/// Computes a product by the loops for all sizes. Requires that they read both operands in place.
void multiply_by_tiles(DType dtype, const SmallProduct& small, SumOrder order, const void* a,
                       const void* b, void* c, bool adds) {
  static const ProductTable& table = for_this_processor(REEL_TABLES(products));
  const MatrixSizes& s = small.sizes[adds];
  if (small.is_turned) std::swap(a, b);
  const auto run = [&]<class T>(ProductLoop<T> loop) {
    loop(s, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c));
  };
  const bool are_runs = order == SumOrder::runs;
  if (dtype == f32)
    run(are_runs ? table.runs_f32 : table.rows_f32);
  else
    run(are_runs ? table.runs_f64 : table.rows_f64);
}

/// Computes c = a·b, then c += a·b. Returns c.
template <class Multiply>
Tensor twice(const Tensor& start, const Multiply& multiply) {
  Tensor c = start + 0.;
  for (const bool adds : {false, true}) multiply(c.data<void>(), adds);
  return c;
}

TEST(SmallProductsTest, AllLayoutsHaveTheBitsOfTiles) {
  manual_seed(1);
  int found = 0, refused = 0;
  for (const DType dtype : {f32, f64})
    for (const std::int64_t m : {1, 2, 3, 4, 7})
      for (const std::int64_t k : {1, 2, 3, 8, 16, 17, 64, 128, 129})
        for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 16, 17, 32, 33, 65, 100, 128, 129})
          for (int layout = 0; layout < 4; ++layout) {
            const MatrixSizes sizes = sizes_of(m, k, n, layout);
            const auto small = small_product(dtype, sizes);
            ++(small ? found : refused);
            if (!small) continue;
            SCOPED_TRACE(str(dtype, ' ', m, 'x', k, 'x', n, ", layout ", layout));
            const Tensor a = cast(random_normal({m, k}), dtype),
                         b = cast(random_normal({k, n}), dtype), zero = zeros({m, n}, dtype);
            const void *left = a.data<void>(), *right = b.data<void>();
            const SumOrder order = sum_order(dtype, sizes);
            const Tensor expected = twice(zero, [&](void* c, bool adds) {
              multiply_by_tiles(dtype, *small, order, left, right, c, adds);
            });
            const auto run = [&](void* c, bool adds) { small->run(left, right, c, adds); };
            const auto multiply_small = [&](void* c, bool adds) {
              MatrixSizes s = sizes;
              s.add = adds;
              multiply(dtype, s, left, right, c);
            };
            expect_same_bits(twice(zero, run), expected);
            expect_same_bits(twice(zero, multiply_small), expected);
          }
  EXPECT_GT(found, 1000);
  EXPECT_GT(refused, 500);
}

TEST(SmallProductsTest, GivenOrdersHaveTheBitsOfTiles) {
  manual_seed(2);
  const Tensor a = random_normal({2, 24}), b = random_normal({24, 9});
  for (const SumOrder order : {SumOrder::chain, SumOrder::slices, SumOrder::runs})
    for (const int layout : {0, 2}) {
      SCOPED_TRACE(str("order ", static_cast<int>(order), ", layout ", layout));
      MatrixSizes sizes = sizes_of(2, 24, 9, layout);
      sizes.order = order;
      const auto small = small_product(f32, sizes);
      // A transposed matrix is read in place as runs only; rows of it are copied.
      EXPECT_EQ(small.has_value(), (order == SumOrder::runs) == (layout == 2));
      if (!small) continue;
      const void *left = a.data<void>(), *right = b.data<void>();
      Tensor made = zeros({2, 9}), multiplied = zeros({2, 9}), expected = zeros({2, 9});
      multiply_by_tiles(f32, *small, order, left, right, expected.data<void>(), false);
      small->run(left, right, made.data<void>(), false);
      multiply(f32, sizes, left, right, multiplied.data<void>());
      expect_same_bits(made, expected);
      expect_same_bits(multiplied, expected);
    }
}

/// The elements next to the result keep their values, and those next to operands do not count.
TEST(SmallProductsTest, NothingIsReadOrWrittenBesideTheMatrices) {
  for (const std::int64_t m : {1, 3})
    for (const std::int64_t n : {1, 2, 5, 16, 19, 40}) {
      SCOPED_TRACE(str(m, " rows, ", n, " columns"));
      constexpr std::int64_t kTerms = 3;
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const auto framed = [&](std::int64_t count) {
        return concat(std::vector{full({8}, nan), full({count}, 0.5), full({64}, nan)}, 0);
      };
      const Tensor a = framed(m * kTerms), b = framed(kTerms * n);
      Tensor c = full({8 + m * n + 64}, 7.);
      const auto small = small_product(f32, sizes_of(m, kTerms, n, 0));
      if (!small) continue;
      small->run(a.data<float>() + 8, b.data<float>() + 8, c.data<float>() + 8, false);
      expect_same_bits(c,
                       concat(std::vector{full({8}, 7.), full({m * n}, 0.75), full({64}, 7.)}, 0));
    }
}

TEST(SmallProductsTest, IntegersAndEmptyProductsHaveNone) {
  EXPECT_FALSE(small_product(i32, sizes_of(1, 2, 3, 0)));
  for (const auto& [m, k, n] : {std::array{0, 2, 3}, {1, 0, 3}, {1, 2, 0}})
    EXPECT_FALSE(small_product(f32, sizes_of(m, k, n, 0)));
}

}  // namespace
}  // namespace reel
