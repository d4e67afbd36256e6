// Products that are summed over lengths leave padding out.
#include "reel/core/ops/products/unpadded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/core/op/bind.h"
#include "reel/core/ops/products/products.h"
#include "reel/tests/modes.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Returns the sum over time and batch, entry by entry, without padding.
Tensor by_entry(const Tensor& x, const Tensor& y, const std::vector<int>& lengths) {
  Tensor total = zeros({3, 4}, f64);
  for (std::size_t b = 0; b < lengths.size(); ++b)
    for (int t = 0; t < lengths[b]; ++t) {
      const auto row = [&](const Tensor& of, std::int64_t size) {
        return reshape(gather(gather(of, scalar(t), of.dim("time")), scalar(static_cast<int>(b)),
                              of.dim("batch")),
                       {size});
      };
      total = total + matmul(reshape(row(x, 3), {3, 1}), reshape(row(y, 4), {1, 4}));
    }
  return total;
}

TEST(UnpaddedRowsTest, SumsOverLengthsLeaveOutPadding) {
  // Long ranges without padding, short ones, and none.
  manual_seed(6);
  for (const std::vector<int>& lengths : std::vector<std::vector<int>>{
           {700, 1, 300}, {40, 40, 2}, {40, 40, 40}, {3, 0, 0}, {0, 0, 0}}) {
    SCOPED_TRACE(join(lengths));
    const Dim batch("batch", 3), time("time", tensor(lengths, {batch})), in("in", 3), out("out", 4);
    for (const bool time_first : {true, false}) {
      const auto draw = [&](const Dim& last) {
        const Dims dims = time_first ? Dims{time, batch, last} : Dims{batch, time, last};
        const double nan = std::numeric_limits<double>::quiet_NaN();
        return mask_padding(random_normal(dims, f64), nan);
      };
      const Tensor x = draw(in), y = draw(out);
      expect_all_close(reshape(matmul(x, y, {time, batch}), {3, 4}), by_entry(x, y, lengths),
                       1e-10);
    }
  }
}

TEST(UnpaddedRowsTest, RowsCountOnlyWithinTheLengthsOfBothDims) {
  manual_seed(7);
  const Dim batch("batch", 3), words("words", tensor({6, 0, 2}, {batch})),
      letters("letters", tensor({1, 4, 5}, {batch})), in("in", 2), out("out", 3);
  const auto draw = [&](const Dim& last) {
    return mask_padding(random_normal({batch, words, letters, last}, f64), kNaN);
  };
  const Tensor x = draw(in), y = draw(out), zero_x = mask_padding(x, 0.0),
               zero_y = mask_padding(y, 0.0);
  const Tensor all = sum(expand(reshape(zero_x, {3, 6, 5, 2, 1}), {3, 6, 5, 2, 3}) *
                             expand(reshape(zero_y, {3, 6, 5, 1, 3}), {3, 6, 5, 2, 3}),
                         {0, 1, 2});
  expect_all_close(reshape(matmul(x, y, {batch, words, letters}), {2, 3}), all, 1e-12);
}

TEST(UnpaddedRowsTest, PaddingMayHoldAnything) {
  // Little padding; only padding; a single, empty entry; entries of one step.
  for (const std::vector<int>& lengths :
       std::vector<std::vector<int>>{{40, 40, 39}, {0, 0, 0}, {0}, {1, 0, 1}}) {
    SCOPED_TRACE(join(lengths));
    const Dim batch("batch", std::ssize(lengths)), in("in", 3), out("out", 4);
    const Dim time("time", tensor(lengths, {batch}));
    const auto draw = [&](const Dims& dims) {
      return mask_padding(random_normal(dims, f64), kNaN);
    };
    const Tensor x = draw({time, batch, in}), y = draw({time, batch, out});
    const DotAttrs both{{0, 1}, {0, 1}, {}, {}};
    ASSERT_TRUE(counts_no_padding(both, x.type(), y.type()));
    expect_all_close(bind(dot_op, {x, y}, dot_attrs(both)),
                     matmul(mask_padding(x), mask_padding(y), {time, batch}), 1e-12);
    // No padding can be left out if a single dim is contracted, with other axes or in another
    // order, or without lengths.
    const Tensor whole = random_normal({Dim("steps", 2), batch, in}, f64);
    EXPECT_FALSE(counts_no_padding({{0}, {0}, {}, {}}, x.type(), y.type()));
    EXPECT_FALSE(counts_no_padding({{1, 2}, {1, 2}, {}, {}}, x.type(), x.type()));
    EXPECT_FALSE(counts_no_padding({{0, 1}, {1, 0}, {}, {}}, x.type(), y.type()));
    EXPECT_FALSE(counts_no_padding({{0, 1}, {0, 1}, {}, {}}, whole.type(), whole.type()));
    const Tensor beside = draw({batch, in, time}), other = draw({batch, in, out});
    EXPECT_FALSE(counts_no_padding({{0, 1}, {0, 1}, {}, {}}, beside.type(), other.type()));
  }
}

// Several threads copy the rows of large operands next to each other.
TEST(UnpaddedRowsTest, ManyThreadsCopyRows) {
  manual_seed(9);
  const Dim batch("batch", 7), time("time", tensor({90, 3, 0, 60, 130, 1, 70}, {batch})),
      in("in", 150), out("out", 200);
  const Tensor x = mask_padding(random_normal({time, batch, in}, f64), kNaN),
               y = mask_padding(random_normal({time, batch, out}, f64), kNaN);
  const DotAttrs both{{0, 1}, {0, 1}, {}, {}};
  const auto product = [&](int count) {
    const Threads these(count);
    return bind(dot_op, {x, y}, dot_attrs(both));
  };
  const Tensor one = product(1);
  const auto plain = [](const Tensor& of, std::int64_t size) {
    return reshape(of, {130 * 7, size});
  };
  expect_all_close(reshape(one, {150, 200}),
                   matmul(transpose(plain(x, 150), {1, 0}), plain(y, 200)), 1e-10);
  for (const int count : {2, 3, 8}) expect_same_bits(product(count), one);
}

TEST(UnpaddedRowsTest, ASumOfNoRowsAddsNothing) {
  const std::vector<double> a(6, 1.0), b(8, 1.0);
  const MatrixSizes sizes{.m = 3,
                          .n = 4,
                          .k = 2,
                          .a_row = 1,
                          .a_step = 3,
                          .b_row = 4,
                          .b_step = 1,
                          .c_row = 4,
                          .add = true};
  std::vector<double> c(12, 5.0);
  multiply_rows(f64, sizes, {}, a.data(), b.data(), c.data());
  EXPECT_EQ(c, std::vector<double>(12, 5.0));
  multiply_rows(f64, sizes, {.ranges = {{1, 1}}, .count = 1}, a.data(), b.data(), c.data());
  EXPECT_EQ(c, std::vector<double>(12, 6.0));
  MatrixSizes fresh = sizes;
  fresh.add = false;
  multiply_rows(f64, fresh, {}, a.data(), b.data(), c.data());
  EXPECT_EQ(c, std::vector<double>(12, 0.0));
}

/// Expects that x·w has the bits of a product of all rows, and zeros in padding.
void expect_rows_alone(const Dims& dims, const Dim& in, const Tensor& w, bool is_computed) {
  const Tensor x = mask_padding(random_normal(dims, w.dtype()), kNaN), clean = mask_padding(x, 0.0);
  const Dim rows("rows", x.numel() / in.size());
  const Tensor all = matmul(reshape(clean, {rows, in}), w, in), made = matmul(x, w, in);
  expect_same_bits(reshape(made, all.dims()), all);
  const std::vector<double> values = values_of(made);
  EXPECT_EQ(std::ranges::none_of(values, [](double v) { return std::isnan(v); }), is_computed);
}

TEST(UnpaddedRowsTest, RowsOfAProductLeaveOutPadding) {
  manual_seed(8);
  const std::vector<int> falling{20, 20, 17, 11, 9, 5, 3, 1, 0, 0, 0, 0};
  const Dim batch("batch", 12), time("time", tensor(falling, {batch}));
  for (const DType dtype : {f32, f64})
    for (const auto& [inner, outer] : std::vector<std::pair<int, int>>{{128, 96}, {300, 33}}) {
      SCOPED_TRACE(str(dtype, ' ', inner, ' ', outer));
      const Dim in("in", inner), out("out", outer);
      for (const Tensor& w : {random_normal({in, out}, dtype), random_normal({out, in}, dtype)})
        for (const int threads : {1, 2}) {
          const Threads these(threads);
          expect_rows_alone({time, batch, in}, in, w, true);
          expect_rows_alone({batch, time, in}, in, w, true);
        }
    }
}

TEST(UnpaddedRowsTest, AllRowsOfAProductAreComputedIfFewArePaddingOrScattered) {
  manual_seed(9);
  const Dim batch("batch", 12), in("in", 128), out("out", 96);
  const Tensor w = random_normal({in, out});
  const Dim scattered("time", tensor({20, 0, 17, 1, 20, 5, 11, 0, 9, 0, 3, 0}, {batch})),
      full("time", tensor({20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 3}, {batch}));
  expect_rows_alone({scattered, batch, in}, in, w, false);
  expect_rows_alone({batch, scattered, in}, in, w, true);  // one range for each entry
  expect_rows_alone({full, batch, in}, in, w, false);
}

}  // namespace
}  // namespace reel
