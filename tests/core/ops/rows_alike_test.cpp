// Products with rows that have the same bits in a part as among all rows: row blocks may run as one
// only then.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "reel/core/op/bind.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/products/packed.h"
#include "reel/core/ops/products/products.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/core/ops/product_numbers.h"

namespace reel {
namespace {

struct Found {
  int alike = 0, others = 0;
};

/// Multiplies a, of m rows, by b, with all rows and with the first `rows`.
template <class Product, class AreAlike>
void look_at(Found& found, std::int64_t m, std::int64_t k, std::int64_t n, std::int64_t rows,
             bool is_transposed, const Product& product, const AreAlike& are_alike) {
  SCOPED_TRACE(str(m, "x", k, "x", n, ", ", rows, " rows", is_transposed ? ", transposed" : ""));
  const Tensor a = random_normal({m, k}),
               b = is_transposed ? random_normal({n, k}) : random_normal({k, n});
  const AttrsRef attrs = single_pair(1, is_transposed);
  if (!are_alike(get<DotAttrs>(attrs.get()), a.type(), b.type(), rows)) {
    ++found.others;
    return;
  }
  ++found.alike;
  expect_same_bits(product(slice(a, 0, 0, rows), b, attrs),
                   slice(product(a, b, attrs), 0, 0, rows));
}

template <class Product, class AreAlike>
Found look_at_all(const Product& product, const AreAlike& are_alike) {
  manual_seed(5);
  Found found;
  for (const bool is_transposed : {false, true})
    for (const std::int64_t k : {1, 3, 40, 128, 512, 1000, 2300})
      for (const std::int64_t n : {1, 2, 30, 65, 128, 512})
        for (const auto& [m, rows] : {std::pair{16, 8}, {64, 16}, {512, 16}, {20, 10}, {6, 1}})
          look_at(found, m, k, n, rows, is_transposed, product, are_alike);
  return found;
}

TEST(RowsAlikeTest, RowsOfDotsHaveTheSameBits) {
  const auto product = [](const Tensor& a, const Tensor& b, const AttrsRef& attrs) {
    return bind(dot_op, {a, b}, attrs);
  };
  const Found found = look_at_all(product, dot_rows_are_alike);
  EXPECT_GT(found.alike, 250);
  EXPECT_GT(found.others, 20);  // oneDNN's of long rows, sums in parts, or runs for some rows only
  // oneDNN computes large products in parts of rows or columns. Rows are alike in all four, or in
  // none on a processor where oneDNN adds in another order.
  Found large;
  for (const auto& [m, k, n, rows] : std::vector<std::array<std::int64_t, 4>>{
           {2240, 512, 512, 560}, {1000, 500, 2048, 16}, {270, 1000, 500, 1}, {700, 2048, 520, 3}})
    look_at(large, m, k, n, rows, false, product, dot_rows_are_alike);
  EXPECT_TRUE(large.alike == 4 || large.others == 4) << large.alike << ' ' << large.others;
  // A large result is not computed in slices, nor are its parts. A part with few enough rows is no
  // longer large, and is computed in slices.
  Found unsliced;
  look_at(unsliced, 400, 600, 20000, 200, false, product, dot_rows_are_alike);
  look_at(unsliced, 120, 1000, 20000, 40, false, product, dot_rows_are_alike);
  EXPECT_EQ(unsliced.alike, 0);
  look_at(unsliced, 120, 1000, 20000, 60, false, product, dot_rows_are_alike);
  EXPECT_EQ(unsliced.alike, 1);
  // Sums that are added up in blocks.
  Found long_sums;
  look_at(long_sums, 8, 20000, 8, 2, false, product, dot_rows_are_alike);
  look_at(long_sums, 8, 40000, 8, 3, true, product, dot_rows_are_alike);
  EXPECT_EQ(long_sums.alike, 2);
}

/// Multiplies all rows at once, and some rows at a time.
void expect_same_rows(MatrixSizes sizes, const Tensor& a, const Tensor& b, std::int64_t at_a_time) {
  const bool is_transposed = sizes.a_step != 1;
  SCOPED_TRACE(str(sizes.m, "x", sizes.k, "x", sizes.n, is_transposed ? " transposed, " : ", ",
                   at_a_time, " rows at a time"));
  const Tensor all = zeros({sizes.m, sizes.n}), some = zeros({sizes.m, sizes.n});
  multiply(f32, sizes, a.data<float>(), b.data<float>(), all.data<float>());
  for (std::int64_t i = 0; i < sizes.m; i += at_a_time) {
    MatrixSizes part = sizes;
    part.m = std::min(at_a_time, sizes.m - i);
    multiply(f32, part, a.data<float>() + i * sizes.a_row, b.data<float>(),
             some.data<float>() + i * sizes.n);
  }
  expect_same_bits(all, some);
}

// oneDNN computes the large ones and chooses among kernels by size. Some kernels add in another
// order in rows and columns that do not fill a tile.
TEST(RowsAlikeTest, RowsOfChainsHaveTheSameBitsInAnyCut) {
  manual_seed(7);
  std::mt19937 engine(7);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution(least, most)(engine);
  };
  for (int i = 0; i < 24; ++i) {
    const std::int64_t k = i % 4 ? draw(220, 600) : kSlice, m = draw(140'000 / k, 700),
                       n = draw(65, i % 3 ? 300 : 800);
    for (const bool is_transposed : {false, true}) {
      MatrixSizes sizes = dense_sizes(m, k, n, is_transposed);
      sizes.order = chain_order(f32, sizes);
      const Tensor a = random_normal({m * k}), b = random_normal({k, n});
      expect_same_rows(sizes, a, b, i % 2 ? draw(1, 9) : draw(50, 400));
    }
  }
}

TEST(RowsAlikeTest, RowsOfProductsThatAreAddedNeedNot) {
  MatrixSizes sizes = dense_sizes(64, 32, 128, false);
  EXPECT_TRUE(rows_are_alike(f32, sizes, 16));
  sizes.add = true;
  EXPECT_FALSE(rows_are_alike(f32, sizes, 16));
}

TEST(RowsAlikeTest, RowsOfPackedDotsHaveTheSameBits) {
  const auto product = [](const Tensor& a, const Tensor& b, const AttrsRef& attrs) {
    const int contract = get<DotAttrs>(attrs.get()).b_contract[0];
    const Tensor packed = bind(pack_op, {b}, make_attrs(PackAttrs{contract}));
    return bind(packed_dot_op, {a, packed}, attrs);
  };
  const auto are_alike = [](const DotAttrs& attrs, const TensorType& a, const TensorType& b,
                            std::int64_t rows) {
    return packed_rows_are_alike(packed_dot_op, attrs, a, b, rows);
  };
  const Found found = look_at_all(product, are_alike);
  EXPECT_GT(found.alike, 150);
  EXPECT_GT(found.others, 5);
}

}  // namespace
}  // namespace reel
