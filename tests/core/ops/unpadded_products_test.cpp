// Products of the entries of a batch leave padding out.
#include "reel/core/ops/products/unpadded_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reel/core/op/bind.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/types/mode.h"
#include "reel/tests/check.h"
#include "reel/tests/many_threads.h"

namespace reel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Returns the product, with zeros instead of padding, of operands with static dims.
Tensor with_static_dims(const Tensor& a, const Tensor& b, const DotAttrs& attrs) {
  const auto plain = [](const Tensor& x) {
    Dims dims;
    for (const Dim& dim : x.dims()) dims.emplace_back(dim.size());
    return reshape(x, dims);
  };
  return bind(dot_op, {plain(a), plain(b)}, dot_attrs(attrs));
}

/// Expects that padding is never read if it is summed, and zero in the result.
void expect_unpadded(const Tensor& a, const Tensor& b, const DotAttrs& attrs) {
  const Tensor made = bind(dot_op, {a, b}, dot_attrs(attrs)), all = with_static_dims(a, b, attrs);
  ASSERT_EQ(made.type().sizes(), all.type().sizes());
  expect_same_bits(reshape(made, all.dims()), all);
}

class UnpaddedProductsTest : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  void SetUp() override { manual_seed(8); }
  Tensor draw(const Dims& dims, DType dtype = f32) const {
    return mask_padding(random_normal(dims, dtype), kNaN);
  }
  const Dim batch{"batch", 4}, heads{"heads", 2}, in{"in", 33}, out{"out", 20},
      keys{"keys", tensor(GetParam(), {batch})};
};

TEST_P(UnpaddedProductsTest, PaddingAddsNothingToSums) {
  for (const DType dtype : {f32, f64}) {
    // A row for each entry, several rows, and an operand with terms that are far apart.
    expect_unpadded(draw({batch, keys}, dtype), draw({batch, keys, in}, dtype),
                    {{1}, {1}, {0}, {0}});
    expect_unpadded(draw({batch, out, keys}, dtype), draw({batch, keys, in}, dtype),
                    {{2}, {1}, {0}, {0}});
    expect_unpadded(draw({keys, batch, out}, dtype), draw({keys, batch, in}, dtype),
                    {{0}, {0}, {1}, {1}});
    // Runs of memory.
    expect_unpadded(draw({batch, out, keys}, dtype), draw({batch, in, keys}, dtype),
                    {{2}, {2}, {0}, {0}});
    // Two dims are summed; one has lengths.
    expect_unpadded(draw({batch, keys, out}, dtype), draw({batch, keys, out, in}, dtype),
                    {{1, 2}, {1, 2}, {0}, {0}});
  }
}

TEST_P(UnpaddedProductsTest, RowsAndColumns) {
  expect_unpadded(draw({batch, keys, in}), draw({batch, in}), {{2}, {1}, {0}, {0}});
  expect_unpadded(draw({batch, in}), draw({batch, keys, in}), {{1}, {2}, {0}, {0}});
  expect_unpadded(draw({batch, keys, in}), draw({batch, out, in}), {{2}, {2}, {0}, {0}});
  expect_unpadded(draw({batch, out, in}), draw({batch, in, keys}), {{2}, {1}, {0}, {0}});
  expect_unpadded(draw({batch, keys}), draw({batch, in}), {{}, {}, {0}, {0}});
  // Terms, rows and columns.
  const Dim time("time", tensor({1, 5, 0, 3}, {batch}));
  expect_unpadded(draw({time, batch, keys}), draw({time, batch, in}), {{0}, {0}, {1}, {1}});
  expect_unpadded(draw({batch, keys, in}), draw({batch, time, in}), {{2}, {2}, {0}, {0}});
}

TEST_P(UnpaddedProductsTest, BatchesOfSeveralDims) {
  expect_unpadded(draw({batch, heads, out, keys}), draw({batch, heads, keys, in}),
                  {{3}, {2}, {0, 1}, {0, 1}});
  expect_unpadded(draw({heads, batch, out, keys}), draw({batch, heads, keys, in}),
                  {{3}, {2}, {0, 1}, {1, 0}});
  const Dim words("words", tensor({{3, 1}, {0, 4}, {2, 2}, {4, 0}}, {batch, heads}));
  expect_unpadded(draw({batch, heads, out, words}), draw({batch, heads, words, in}),
                  {{3}, {2}, {0, 1}, {0, 1}});
  expect_unpadded(draw({heads, batch, words, in}), draw({batch, heads, in, out}),
                  {{3}, {2}, {0, 1}, {1, 0}});
}

TEST_P(UnpaddedProductsTest, LongSumsAndManyThreads) {
  const Dim steps("steps", tensor({700, 3, 0, 256}, {batch})), wide("wide", 200);
  const Tensor a = draw({steps, batch, wide}), b = draw({steps, batch, in});
  expect_unpadded(a, b, {{0}, {0}, {1}, {1}});
  const DotAttrs attrs{{0}, {0}, {1}, {1}};
  const Tensor one = bind(dot_op, {a, b}, dot_attrs(attrs));
  const OnManyThreads threads;
  expect_same_bits(bind(dot_op, {a, b}, dot_attrs(attrs)), one);
}

INSTANTIATE_TEST_SUITE_P(Lengths, UnpaddedProductsTest,
                         ::testing::Values(std::vector{37, 1, 20, 16}, std::vector{0, 9, 8, 0},
                                           std::vector{5, 5, 5, 5}, std::vector{0, 0, 0, 0},
                                           std::vector{40, 40, 40, 39}));

/// A tape that counts the ops that run.
class OpCounter : public Recorder {
 public:
  void record(const Op& op, const Ref<const Attrs>&, std::span<const OpInput>,
              std::span<const Tensor>) override {
    names += names.empty() ? op.name : str(' ', op.name);
  }
  bool is_tracked(const Tensor&) const override { return true; }
  bool takes_rows(const Tensor&) const override { return false; }
  void mark(Mark, const std::string&, std::int64_t) override {}
  std::string names;
};

// The kernel reads no padding, so eager mode needs no masks.
TEST(UnpaddedProductsTest, EagerModeMasksOnlyIfTheKernelReadsPadding) {
  const Dim batch("batch", 2), keys("keys", tensor({1, 3}, {batch})),
      words("words", tensor({2, 1}, {batch})), in("in", 4);
  const auto draw = [](const Dims& dims) { return mask_padding(random_normal(dims), kNaN); };
  const auto ops_of = [&](const Dims& a, const Dims& b, const Dims& over) {
    const Tensor x = draw(a), y = draw(b);
    OpCounter counter;
    ThreadMode mode = thread_mode;
    mode.tape = &counter;
    const ModeScope scope(mode);
    const Tensor made = matmul(x, y, over);
    return counter.names;
  };
  EXPECT_EQ(ops_of({batch, keys}, {batch, keys, in}, {keys}), "dot");
  // Several dims are summed, or their lengths run over a dim that is summed.
  EXPECT_NE(ops_of({batch, keys, words}, {batch, keys, words}, {keys, words}), "dot");
  EXPECT_NE(ops_of({batch, keys, in}, {batch, keys}, {batch, keys}), "dot");
  EXPECT_NE(ops_of({batch, keys}, {batch, keys}, {batch}), "dot");
}

// A product of tiny numbers may be -0; the zeros of padding make it +0.
TEST(UnpaddedProductsTest, SumsWithPaddingAreNeverNegativeZeros) {
  const Dim batch("batch", 2), keys("keys", tensor({1, 3}, {batch}));
  const Tensor a = full({batch, keys}, -1e-30, f32), b = full({batch, keys}, 1e-30, f32);
  const Tensor made = bind(dot_op, {a, b}, dot_attrs({{1}, {1}, {0}, {0}}));
  EXPECT_FALSE(std::signbit(made.to_vector<float>()[0]));
}

TEST(UnpaddedProductsTest, SumsOfNoTermsAreTheirStart) {
  const Dim batch("batch", 2), keys("keys", tensor({0, 2}, {batch}));
  const Tensor a = ones({batch, keys}, f64), b = ones({batch, keys, Dim("in", 2)}, f64);
  const std::vector<int> first{0}, none;
  const MatrixSizes sizes{.m = 1,
                          .n = 2,
                          .k = 2,
                          .a_row = 2,
                          .a_step = 1,
                          .b_row = 2,
                          .b_step = 1,
                          .c_row = 2,
                          .add = true};
  const UnpaddedProducts unpadded(f64, sizes,
                                  {.rows = {a.type(), none, first},
                                   .columns = {b.type(), {2}, first},
                                   .terms = {a.type(), {1}, first}});
  ASSERT_TRUE(unpadded);
  std::vector<double> c(2, 5.0);
  unpadded.multiply(0, a.data<void>(), b.data<void>(), c.data());
  EXPECT_EQ(c, std::vector(2, 5.0));
  unpadded.multiply(1, a.data<void>(), b.data<void>(), c.data());
  EXPECT_EQ(c, std::vector(2, 7.0));
}

}  // namespace
}  // namespace reel
