// Random tensors: their distributions, and that a number depends only on where it is drawn.
//
// A correct generator exceeds each bound for fewer than one seed in a thousand; the seeds here are
// fixed.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "reel/core/op/bind.h"
#include "reel/core/ops/creation/draws.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/kernels/philox.h"
#include "reel/core/ops/kernels/philox_table.h"
#include "reel/core/runtime/processor.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMany = 20000;

double mean_of(const std::vector<double>& values) {
  double total = 0;
  for (double value : values) total += value;
  return total / static_cast<double>(values.size());
}

/// Returns the largest distance between the values' distribution and the distribution with this cdf
/// (Kolmogorov and Smirnov), times the root of their number. It exceeds 1.95 once in a thousand.
template <class Cdf>
double distance(std::vector<double> values, Cdf cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double at = cdf(values[i]), below = static_cast<double>(i);
    most = std::max({most, at - below / n, (below + 1) / n - at});
  }
  return most * std::sqrt(n);
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

TEST(TruncatedNormalTest, IsNormalWithinTwoStandardDeviations) {
  const double outside = normal_cdf(-2);
  for (const DType dtype : {f32, f64}) {
    manual_seed(1);
    const std::vector<double> z = values_of(truncated_normal({kMany}, 0, 1, dtype));
    EXPECT_LE(*std::max_element(z.begin(), z.end()), 2);
    EXPECT_GE(*std::min_element(z.begin(), z.end()), -2);
    EXPECT_GT(*std::max_element(z.begin(), z.end()), 1.99);
    EXPECT_LT(
        distance(z, [&](double at) { return (normal_cdf(at) - outside) / (1 - 2 * outside); }),
        1.95);
    std::vector<double> squares;
    for (double value : z) squares.push_back(value * value);
    EXPECT_NEAR(mean_of(z), 0, 0.02);
    EXPECT_NEAR(std::sqrt(mean_of(squares)), 0.8796, 0.015);
  }
}

TEST(TruncatedNormalTest, HasAMeanAndAStandardDeviation) {
  manual_seed(2);
  const Tensor z = truncated_normal({100}, 0, 1, f64);
  manual_seed(2);
  expect_all_close(truncated_normal({100}, 3, 0.5, f64), z * 0.5 + 3, 1e-12);
  expect_values(truncated_normal({2}, 7, 0), {7, 7});
  EXPECT_EQ(message_of<ArgumentError>([] { truncated_normal({2}, 0, -1); }),
            "truncated_normal: stddev must not be negative, got -1");
  EXPECT_EQ(message_of<DTypeError>([] { truncated_normal({2}, 0, 1, i32); }),
            "truncated_normal: draws f32 or f64, not i32");
}

TEST(TruncatedNormalTest, AnElementDependsOnItsOwnNumberAlone) {
  manual_seed(3);
  const Tensor many = truncated_normal({1000});
  manual_seed(3);
  expect_same_bits(truncated_normal({10}), slice(many, 0, 0, 10));
}

TEST(BernoulliTest, IsTrueWithProbabilityP) {
  manual_seed(4);
  const Tensor flips = bernoulli(0.3, {kMany});
  EXPECT_EQ(flips.dtype(), boolean);
  const std::vector<double> values = values_of(flips);
  EXPECT_NEAR(mean_of(values), 0.3, 0.011);
  double both = 0;  // neighbours are independent
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) both += values[i] * values[i + 1];
  EXPECT_NEAR(both / (kMany / 2), 0.09, 0.0095);
  EXPECT_TRUE(all(bernoulli(1, {kMany})).item<bool>());
  EXPECT_FALSE(any(bernoulli(0, {kMany})).item<bool>());
}

TEST(BernoulliTest, PMayDifferByElement) {
  const Dim batch("batch", 4000), feature("feature", 5);
  manual_seed(5);
  const Tensor p = tensor({0., 1., 0.5, kNan, 2.}, {feature}, f64);
  const Tensor flips = bernoulli(p, {batch, feature});
  EXPECT_EQ(flips.dims(), (Dims{batch, feature}));
  expect_values(mean(cast(flips, f64), batch), {0, 1, 0.5, 0, 1}, 0.03);
  EXPECT_EQ(str(bernoulli(full({3, 1}, 0.5), {3, 2}).type()), "boolean[3,2]");
}

TEST(BernoulliTest, ErrorsNameP) {
  const Dim batch("batch", 2), feature("feature", 3);
  for (const double p : {-0.1, 1.5})
    EXPECT_EQ(message_of<ArgumentError>([&] { bernoulli(p, {2}); }),
              str("bernoulli: p must lie in [0, 1], got ", p));
  EXPECT_THROW(bernoulli(kNan, {2}), ArgumentError);
  EXPECT_EQ(message_of<DTypeError>([] { bernoulli(scalar(1), {2}); }),
            "bernoulli: p must be f32 or f64, got i32[]; cast it");
  EXPECT_EQ(message_of<ShapeError>([&] {
              bernoulli(zeros({batch, feature}), {batch});
            }),
            "bernoulli: p f32[batch=2,feature=3] does not broadcast to the dims [batch=2]");
  EXPECT_EQ(message_of<ShapeError>([] {
              bernoulli(zeros({2, 3}), {3});
            }),
            "bernoulli: p f32[2,3] does not broadcast to the dims [3]");
}

TEST(PermutationTest, AllOrdersAreEquallyLikely) {
  manual_seed(6);
  const Dim many("many", 4800);
  const Dim four("four", full({many}, 4, i32));
  const std::vector<std::int32_t> orders = permutation(four).to_vector<std::int32_t>();
  std::map<std::array<std::int32_t, 4>, double> counts;
  for (std::size_t i = 0; i < orders.size(); i += 4)
    ++counts[{orders[i], orders[i + 1], orders[i + 2], orders[i + 3]}];
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;  // with 23 degrees of freedom: above 49.7 once in a thousand
  for (const auto& [order, count] : counts) {
    EXPECT_EQ(order[0] + order[1] + order[2] + order[3], 6);
    chi_square += (count - 200) * (count - 200) / 200;
  }
  EXPECT_LT(chi_square, 49.7);
}

TEST(PermutationTest, IsOfADimOrASize) {
  manual_seed(7);
  const Tensor plain = permutation(100);
  EXPECT_EQ(str(plain.type()), "i32[100]");
  expect_all_close(sort(plain, 0), range(100));
  EXPECT_FALSE(all(plain == range(100)).item<bool>());
  expect_values(permutation(0), {});
  const Dim batch("batch", 3), time("time", tensor({4, 1, 0}, {batch}));
  const Tensor ragged = permutation(time);
  EXPECT_EQ(ragged.dims(), (Dims{batch, time}));
  expect_values(mask_padding(sort(ragged, time)), {0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(message_of<ShapeError>([] { permutation(Dim("time")); }),
            "permutation: f64[time]: dim time is undefined; give it a size or lengths");
}

TEST(DrawTest, AnEntryDrawsTheSameHoweverLongTheOthersAre) {
  const Dim batch("batch", 2), short_time("time", tensor({3, 2}, {batch})),
      long_time("time", tensor({9, 2}, {batch})), feature("feature", 2);
  const Dim short_words("words", tensor({2, 3}, {batch})),
      long_words("words", tensor({2, 20}, {batch}));
  const auto draw = [&](const Dim& time) {
    manual_seed(8);
    return gather(slice(random_normal({batch, time, feature}), time, 0, 2), scalar(1), batch);
  };
  expect_same_bits(draw(short_time), draw(long_time));
  const auto draw_pair = [&](const Dim& time, const Dim& words) {
    manual_seed(8);
    const Tensor all = slice(slice(random_normal({words, batch, time}), time, 0, 2), words, 0, 2);
    return gather(all, scalar(0), batch);
  };
  expect_same_bits(draw_pair(short_time, short_words), draw_pair(long_time, long_words));
}

TEST(DrawTest, SomeRowsDrawTheirNumbers) {
  const Tensor key = tensor({3, 5}, {Dim(2)}, i64), rows = tensor({2, 0}, {Dim(2)}, i64),
               count = scalar(3, i64);
  const Dim batch("batch", 3), time("time", tensor({2, 4, 1}, {batch})), hidden("hidden", 2);
  const Dim part("batch", 2), some("time", tensor({1, 2}, {part}));
  const auto draw = [&](const Dims& dims) {
    return values_of(
        bind(random_uniform_op, {key}, make_attrs(DrawAttrs{TensorType(f32, dims), 1, 0, 1})));
  };
  const auto draw_rows = [&](const Dims& dims, int axis) {
    return values_of(bind(draw_rows_op, {key, rows, count},
                          make_attrs(DrawRowsAttrs{{TensorType(f32, dims), 1, 0, 1}, axis, 0})));
  };
  const std::vector<double> all = draw({hidden, batch}), made = draw_rows({hidden, part}, 1);
  EXPECT_EQ(made, (std::vector{all[2], all[0], all[5], all[3]}));
  const std::vector<double> ragged = draw({batch, time, hidden}),
                            sorted = draw_rows({part, some, hidden}, 0);
  ASSERT_EQ(sorted.size(), 8U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sorted[i], ragged[16 + i]);
    EXPECT_EQ(sorted[4 + i], ragged[i]);
  }
}

TEST(DropoutTest, DropsAndScales) {
  manual_seed(9);
  const std::vector<double> values = values_of(dropout(full({kMany}, 3), 0.25));
  double dropped = 0;
  for (double value : values) {
    EXPECT_TRUE(value == 0 || value == 4) << value;
    dropped += value == 0;
  }
  EXPECT_NEAR(dropped / kMany, 0.25, 0.011);
}

TEST(DropoutTest, RateZeroIsXAndRateOneIsZeros) {
  const Tensor x = tensor({1., kNan, 3.});
  manual_seed(10);
  const Tensor next = random_uniform({1});
  manual_seed(10);
  EXPECT_EQ(dropout(x, 0).block(), x.block());
  expect_same_bits(random_uniform({1}), next);  // nothing was drawn
  expect_values(dropout(x, 1), {0, 0, 0});
  expect_values(grad([](Tensor x) -> Tensor { return sum(dropout(x, 1)); })(x), {0, 0, 0});
}

TEST(DropoutTest, MaskVariesAlongTheGivenAxesOnly) {
  const Dim batch("batch", 50), time("time", 4), feature("feature", 50);
  manual_seed(11);
  const Tensor x = dropout(ones({batch, time, feature}, f64), 0.5, {batch, feature});
  const Tensor together = sum(x, time);  // all four steps, or none
  EXPECT_TRUE(all(together == 0.0 || together == 8.0).item<bool>());
  EXPECT_NEAR(mean(x).item<double>(), 1, 0.07);
  const Tensor plain = dropout(ones({40, 3, 30}), 0.5, {0, -1});
  const Tensor sums = sum(plain, 1);
  EXPECT_TRUE(all(sums == 0.0 || sums == 6.0).item<bool>());
  EXPECT_TRUE(any(sums == 0.0).item<bool>() && any(sums == 6.0).item<bool>());
  EXPECT_EQ(dropout(ones({time, batch}), 0.5, batch).dims(), (Dims{time, batch}));
}

TEST(DropoutTest, ErrorsNameTheRate) {
  for (const double rate : {-0.5, 1.25})
    EXPECT_EQ(message_of<ArgumentError>([&] { dropout(zeros({2}), rate); }),
              str("dropout: rate must lie in [0, 1], got ", rate));
  EXPECT_THROW(dropout(zeros({2}), kNan), ArgumentError);
  EXPECT_EQ(message_of<DTypeError>([] { dropout(zeros({2}, i32), 0.5); }),
            "dropout: takes floats, got i32[2]; cast it to f32 or f64");
  EXPECT_EQ(message_of<IndexError>([] { dropout(zeros({2}), 0.5, 1); }),
            "dropout: axis 1 is out of range for f32[2], which has 1 axis");
}

class DrawInEveryModeTest : public InEveryMode {
 protected:
  /// Expects that two calls draw the numbers of two eager calls after the same seed.
  template <class F, class... Args>
  void expect_the_draws_of_eager(F f, const Args&... args) const {
    manual_seed(12);
    const Tensor first = f(args...), second = f(args...);
    manual_seed(12);
    const auto again = run(f);
    expect_same_bits(mask_padding(again(args...)), mask_padding(first));
    expect_same_bits(mask_padding(again(args...)), mask_padding(second));
    EXPECT_FALSE(all(mask_padding(first) == mask_padding(second)).template item<bool>());
  }
  const Dim batch{"batch", 3};
  const Dim time{"time", tensor({5, 2, 4}, {batch})};
};
REEL_IN_EVERY_MODE(DrawInEveryModeTest);

TEST_P(DrawInEveryModeTest, DrawsAreTheSame) {
  const Tensor x = ones({batch, time});
  expect_the_draws_of_eager(
      [](Tensor x) { return x + truncated_normal(x.dims()) + random_normal(x.dims()); }, x);
  expect_the_draws_of_eager(
      [&](Tensor x) {
        return x * cast(bernoulli(0.5, {time, batch}), f32);
      },
      x);
  expect_the_draws_of_eager([](Tensor x) { return dropout(x, 0.5); }, x);
  expect_the_draws_of_eager([](Tensor x) { return dropout(x, 0.5, x.dim("time")); }, x);
  expect_the_draws_of_eager([](Tensor x) { return cast(permutation(x.dim("time")), f32) + x; }, x);
  expect_the_draws_of_eager([](Tensor x) { return x + cast(permutation(20), f32); }, zeros({20}));
}

TEST_P(DrawInEveryModeTest, DrawsInScansAreTheSame) {
  const auto walk = [](Tensor x) {
    const Dim batch = x.dim("batch");
    auto [ys, last, dim] = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = zeros({batch}),
        .xs = x,
        .body =
            [&](Tensor x, Tensor s) {
              Tensor next = s + dropout(x, 0.3) * truncated_normal({batch});
              return std::pair{next, next};
            },
    });
    return ys;
  };
  expect_the_draws_of_eager(walk, ones({batch, time}));
}

TEST_P(DrawInEveryModeTest, GradientOfDropoutHasItsMask) {
  manual_seed(13);
  const Tensor x = random_normal({batch, time}, f64);
  const auto drop = [](Tensor x) -> Tensor { return dropout(x, 0.4); };
  manual_seed(14);
  const Tensor scale = drop(ones_like(x));  // 0 or 1 / 0.6
  manual_seed(14);
  expect_all_close(
      mask_padding(run(grad([=](Tensor x) -> Tensor { return sum(square(drop(x))); }))(x)),
      mask_padding(x * square(scale) * 2), 1e-12);
  const auto twice = grad([=](Tensor x) -> Tensor {
    return sum(grad([=](Tensor x) -> Tensor { return sum(pow(drop(x), 3)); })(x));
  });
  manual_seed(14);
  expect_all_close(mask_padding(run(twice)(x)), mask_padding(x * pow(scale, 3) * 6), 1e-12);
}

TEST_P(DrawInEveryModeTest, GradientOfDropoutInAScanHasItsMask) {
  const auto steps = [](Tensor x) -> Tensor {
    return scan(Scan{
                    .spatial_dim = x.dim("time"),
                    .xs = x,
                    .body = [](Tensor x) { return dropout(x, 0.4); },
                })
        .ys;
  };
  const Tensor x = ones({batch, time}, f64);
  manual_seed(15);
  const Tensor scale = steps(x);
  manual_seed(15);
  const Tensor g = run(grad([=](Tensor x) -> Tensor { return sum(square(steps(x))); }))(x);
  expect_all_close(mask_padding(g), transpose(square(scale) * 2, {batch, time}), 1e-12);
}

TEST_P(DrawInEveryModeTest, DropoutOfASizeThatOnlyARunKnows) {
  const auto grow = [](Tensor x) {
    auto [i, grown] = while_loop([](Tensor i, Tensor) { return i < 3; },
                                 [](Tensor i, Tensor m) {
                                   const Tensor shared = dropout(m, 0.5, 0);
                                   return std::tuple{i + 1, concat({dropout(m, 0.5), shared}, 0)};
                                 },
                                 std::tuple{scalar(0), x},
                                 {.shape_invariants = {PartialShape{}, PartialShape{unknown, 2}}});
    return grown;
  };
  expect_the_draws_of_eager(grow, ones({4, 2}));
}

class PhiloxTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_pointwise_table(GetParam())) GTEST_SKIP() << "this processor has no " << GetParam();
    const PhiloxTable* const tables[] = REEL_TABLES(philox_table);
    for (std::size_t i = 0; i < std::size(tables); ++i)
      if (kInstructionSets[i] == std::string_view(GetParam())) table_ = tables[i];
    for (int i = 0; i < kPhiloxBlock; ++i) low_[i] = i * 0x9e3779b97f4a7c15;
  }
  /// Expects the first `count` words of each draw from `block`.
  void expect_words(PhiloxBlock block, int count) {
    block(kKey, kHigh, low_, words_);
    for (int i = 0; i < kPhiloxBlock; ++i) {
      const auto expected = philox(kKey, kHigh, low_[i]);
      for (int w = 0; w < count; ++w) EXPECT_EQ(words_[w][i], expected[w]) << i << ", word " << w;
    }
  }

  static constexpr std::uint64_t kKey = 0xfedcba9876543210, kHigh = 0x8123456789abcdef;
  const PhiloxTable* table_ = nullptr;
  std::uint64_t low_[kPhiloxBlock];
  std::uint32_t words_[4][kPhiloxBlock];
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, PhiloxTest, ::testing::ValuesIn(kInstructionSets),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(PhiloxTest, ABlockIsOneDrawAfterTheOther) {
  expect_words(table_->block, 4);
  expect_words(table_->three_words, 3);
  expect_words(table_->two_words, 2);
  expect_words(table_->one_word, 1);
}

/// Returns the number that a draw gives. Each step is rounded: `volatile` forbids instructions that
/// multiply and add.
template <class T>
T uniform(std::uint32_t first, std::uint32_t second, T low, T span, T high) {
  const T unit =
      sizeof(T) == 4
          ? static_cast<T>(first >> 8) * static_cast<T>(0x1p-24)
          : static_cast<T>(static_cast<double>(std::uint64_t{first} << 21 ^ second >> 11) *
                           0x1p-53);
  const volatile T scaled = span * unit;
  const T value = low + scaled;
  return value < high ? value : low;
}

TEST_P(PhiloxTest, UniformNumbersHaveTheSameBitsOnEveryInstructionSet) {
  table_->block(kKey, kHigh, low_, words_);
  words_[0][0] = words_[1][0] = 0;
  words_[0][1] = words_[1][1] = 0xffffffff;  // rounded up to the end of most intervals
  words_[0][2] = 0x7fffffff, words_[0][3] = 0x80000000;
  const std::pair<double, double> intervals[] = {{0, 1}, {-1, 2}, {1e6, 1e6 + 1}, {-0.3, 0.1}};
  for (const auto& [from, to] : intervals)
    for (const std::int64_t count : {1, 7, 63, 64}) {
      const float low32 = static_cast<float>(from), high32 = static_cast<float>(to),
                  span32 = static_cast<float>(to - from);
      const double span64 = to - from;
      float f32s[kPhiloxBlock + 1];
      double f64s[kPhiloxBlock + 1];
      f32s[count] = 7, f64s[count] = 7;
      table_->uniform_f32(words_, low32, span32, high32, f32s, count);
      table_->uniform_f64(words_, from, span64, to, f64s, count);
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(f32s[i], uniform(words_[0][i], words_[1][i], low32, span32, high32)) << i;
        EXPECT_EQ(f64s[i], uniform(words_[0][i], words_[1][i], from, span64, to)) << i;
      }
      EXPECT_EQ(f32s[count], 7);
      EXPECT_EQ(f64s[count], 7);
    }
}

TEST_P(PhiloxTest, NormalNumbersHaveTheSameBitsOnEveryInstructionSet) {
  const PhiloxTable* const tables[] = REEL_TABLES(philox_table);
  table_->block(kKey, kHigh, low_, words_);
  const std::uint32_t edges[] = {0, 1, 0x1fffffff, 0x20000000, 0x7fffffff, 0x80000000, 0xffffffff};
  for (std::size_t i = 0; i < std::size(edges); ++i)
    words_[0][i] = edges[i], words_[2][i] = edges[std::size(edges) - 1 - i];
  for (const std::int64_t count : {1, 7, 63, 64}) {
    float made[kPhiloxBlock + 1], first[kPhiloxBlock];
    made[count] = 7;
    table_->normal_f32(words_, made, count);
    tables[0]->normal_f32(words_, first, count);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(made[i]), std::bit_cast<std::uint32_t>(first[i])) << i;
      // By the formula, in double precision; a radius near 0 is rounded coarsely.
      const double u = (words_[0][i] + 0.5) * 0x1p-32, turn = words_[2][i] * 0x1p-32;
      EXPECT_NEAR(made[i], std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * turn), 4e-4) << i;
    }
    EXPECT_EQ(made[count], 7);
  }
}

TEST(RandomNormalTest, BothPrecisionsDrawTheSameNumbers) {
  for (const bool is_truncated : {false, true}) {
    const auto numbers = [&](DType dtype) {
      manual_seed(3);
      return is_truncated ? truncated_normal({1000}, 1, 2, dtype) : random_normal({1000}, dtype);
    };
    expect_all_close(cast(numbers(f32), f64), numbers(f64), 1e-4);
  }
}

TEST(RandomUniformTest, ErrorOfAnIntervalThatTheDtypeCannotSpan) {
  EXPECT_EQ(message_of<ArgumentError>([] { random_uniform({2}, -3e38, 3e38); }),
            "random_uniform: from -3e+38 to 3e+38 is a larger distance than f32 can hold");
  EXPECT_EQ(message_of<ArgumentError>([] { random_uniform({2}, 0, INFINITY, f64); }),
            "random_uniform: from 0 to inf is a larger distance than f64 can hold");
}

}  // namespace
}  // namespace reel
