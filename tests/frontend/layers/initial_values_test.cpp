// Initial values of weights: their distributions, and that each layer takes them.
#include <cmath>

#include "reel/core/functions/convolutions.h"
#include "reel/frontend/layers/causal_conv.h"
#include "reel/frontend/layers/conv.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class InitialValuesTest : public InEveryMode {
 protected:
  void SetUp() override { manual_seed(11); }
  /// Returns the values that a function makes in this mode.
  Tensor made(const InitialValues& values, const Dims& dims, std::int64_t fan_in,
              std::int64_t fan_out, DType dtype) {
    return run([=](const Tensor& seed) { return values(dims, fan_in, fan_out, dtype) + seed; })(
        zeros({}, dtype));
  }
  /// Expects a mean of 0 and this variance, to 5 %, and elements within the bound.
  void expect_moments(const InitialValues& values, double variance, double bound) {
    for (const DType dtype : {f32, f64}) {
      const Dim in("in", 40), out("out", 1000);
      const Tensor x = made(values, {in, out}, 40, 10, dtype);
      EXPECT_EQ(x.type(), TensorType(dtype, {in, out}));
      double sum = 0, squares = 0, largest = 0;
      for (const double value : values_of(x)) {
        sum += value;
        squares += value * value;
        largest = std::max(largest, std::abs(value));
      }
      EXPECT_NEAR(sum / 40000 / std::sqrt(variance), 0, 0.05);
      EXPECT_NEAR(squares / 40000 / variance, 1, 0.05);
      EXPECT_LE(largest, bound * 1.000001);
      EXPECT_GT(largest, bound == INFINITY ? 3 * std::sqrt(variance) : bound * 0.99);
    }
  }
};
REEL_IN_EVERY_MODE(InitialValuesTest);

TEST_P(InitialValuesTest, VariancesFollowTheFans) {
  expect_moments(glorot_uniform, 2. / 50, std::sqrt(6. / 50));
  expect_moments(glorot_normal, 2. / 50, INFINITY);
  expect_moments(he_uniform, 2. / 40, std::sqrt(6. / 40));
  expect_moments(he_normal, 2. / 40, INFINITY);
  expect_moments(lecun_uniform, 1. / 40, std::sqrt(3. / 40));
  expect_moments(lecun_normal, 1. / 40, INFINITY);
}

/// Returns the largest distance of xᵀx, or of xxᵀ if x has fewer rows, from the unit matrix.
double distance_from_orthogonal(const Tensor& x, std::int64_t rows, std::int64_t columns) {
  const std::vector<double> v = values_of(x);
  const bool is_wide = rows < columns;
  const std::int64_t count = is_wide ? rows : columns, length = is_wide ? columns : rows;
  const auto at = [&](std::int64_t i, std::int64_t k) {
    return v[static_cast<std::size_t>(is_wide ? i * columns + k : k * columns + i)];
  };
  double distance = 0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < count; ++j) {
      double sum = i == j ? -1 : 0;
      for (std::int64_t k = 0; k < length; ++k) sum += at(i, k) * at(j, k);
      distance = std::max(distance, std::abs(sum));
    }
  return distance;
}

TEST_P(InitialValuesTest, OrthogonalRowsOrColumns) {
  for (const auto [rows, columns] :
       {std::pair{1, 1}, {2, 2}, {30, 30}, {7, 3}, {3, 7}, {1, 5}, {50, 49}}) {
    const Dim in("in", rows), out("out", columns);
    const Tensor x = made(orthogonal, {in, out}, 0, 0, f64);
    EXPECT_EQ(x.type(), TensorType(f64, {in, out}));
    EXPECT_LT(distance_from_orthogonal(x, rows, columns), 1e-13) << rows << ' ' << columns;
    EXPECT_LT(distance_from_orthogonal(made(orthogonal, {in, out}, 0, 0, f32), rows, columns),
              1e-6);
  }
  EXPECT_LT(distance_from_orthogonal(made(orthogonal, {3, 4, 5}, 0, 0, f64), 12, 5), 1e-13);
  EXPECT_EQ(made(orthogonal, {0, 4}, 0, 0, f32).type(), TensorType(f32, {0, 4}));
}

/// A rotation by any angle, with or without a reflection, is equally likely: the first column has
/// the mean 0, its squares 1/2, its fourth powers 3/8.
TEST(InitialValuesTest, OrthogonalMatricesAreEquallyLikely) {
  manual_seed(3);
  double sum = 0, fourth = 0, determinants = 0;
  constexpr int kMany = 3000;
  for (int i = 0; i < kMany; ++i) {
    const std::vector<double> x = values_of(orthogonal({2, 2}, 0, 0, f64));
    sum += x[0];
    fourth += std::pow(x[0], 4);
    determinants += x[0] * x[3] - x[1] * x[2];
  }
  EXPECT_NEAR(sum / kMany, 0, 0.05);
  EXPECT_NEAR(fourth / kMany, 3. / 8, 0.02);
  EXPECT_NEAR(determinants / kMany, 0, 0.07);
}

TEST_P(InitialValuesTest, IdentityMatrixHasOnesOnItsDiagonal) {
  const Dim in("in", 2), out("out", 3);
  expect_values(made(identity_matrix, {in, out}, 0, 0, f32), {1, 0, 0, 0, 1, 0});
  expect_values(made(identity_matrix, {out, in}, 0, 0, f64), {1, 0, 0, 1, 0, 0});
}

TEST_P(InitialValuesTest, EachGateIsAMatrixOfItsOwn) {
  const Dim in("in", 3), hidden("hidden", 5);
  const auto expect_gates = [&](const auto& cell, int gates) {
    EXPECT_EQ(cell.recurrent_weight.dims(), (Dims{hidden, cell.gate}));
    EXPECT_EQ(cell.input_weight.dims(), (Dims{in, cell.gate}));
    for (const Tensor& part : split(cell.recurrent_weight, cell.gate, gates))
      EXPECT_LT(distance_from_orthogonal(part, 5, 5), 1e-13);
    for (const Tensor& part : split(cell.input_weight, cell.gate, gates))
      expect_values(slice(part, in, 0, 1), {1, 0, 0, 0, 0});
  };
  expect_gates(RnnCell::init(
                   in, hidden,
                   {.dtype = f64, .input_weight = identity_matrix, .recurrent_weight = orthogonal}),
               1);
  expect_gates(GruCell::init(
                   in, hidden,
                   {.dtype = f64, .input_weight = identity_matrix, .recurrent_weight = orthogonal}),
               3);
  expect_gates(LstmCell::init(
                   in, hidden,
                   {.dtype = f64, .input_weight = identity_matrix, .recurrent_weight = orthogonal}),
               4);
}

TEST(InitialValuesTest, LayersGiveTheirFans) {
  const Dim in("in", 6), out("out", 4);
  const InitialValues fans = [](const Dims& dims, std::int64_t fan_in, std::int64_t fan_out,
                                DType dtype) {
    return full(dims, static_cast<double>(fan_in * 1000 + fan_out), dtype);
  };
  const auto first = [](const Tensor& x) { return values_of(x)[0]; };
  EXPECT_EQ(first(Linear::init(in, out, {.weight = fans}).weight), 6004);
  EXPECT_EQ(first(Embedding::init(in, out, {.weight = fans}).weight), 6004);
  EXPECT_EQ(first(SparseEmbedding::init(in, out, {.weight = fans}).weight.dense()), 6004);
  EXPECT_EQ(first(Conv::init({3, 5}, in, out, {.groups = 2, .filter = fans}).filter), 45030);
  EXPECT_EQ(first(DepthwiseConv::init({3, 5}, in, {.filter = fans}).filter), 15015);
  EXPECT_EQ(first(CausalConv::init(3, in, out, {.filter = fans}).filter), 18012);
  EXPECT_EQ(first(CausalConv::depthwise(3, in, {.filter = fans}).filter), 3003);
  EXPECT_EQ(first(LstmCell::init(in, out, {.input_weight = fans}).input_weight), 6004);
  EXPECT_EQ(first(LstmCell::init(in, out, {.recurrent_weight = fans}).recurrent_weight), 4004);
}

TEST(InitialValuesTest, ErrorsNameFunctionAndLayer) {
  const Dim in("in", 3), out("out", 2);
  EXPECT_EQ(message_of<ArgumentError>([] {
              he_normal({2, 2}, 0, 2);
            }),
            "he_normal: fan_in must be positive, got 0");
  EXPECT_EQ(message_of<ArgumentError>([] { glorot_normal({2}, 0, 0); }),
            "glorot_normal: fans must be positive, got 0 and 0");
  EXPECT_EQ(message_of<ArgumentError>([&] { orthogonal({in}, 3, 1); }),
            "orthogonal: takes a matrix, got the dims [in=3]");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              identity_matrix({2, 2, 2}, 2, 2);
            }),
            "identity_matrix: takes a matrix, got the dims [2,2,2]");
  const auto transposed = [](const Dims& dims, auto...) { return zeros({dims[1], dims[0]}); };
  EXPECT_EQ(message_of<ShapeError>([&] { Linear::init(in, out, {.weight = transposed}); }),
            "Linear: initial values of a weight with the dims [in=3,out=2] are f32[out=2,in=3]; "
            "make them over the dims that the function is given");
  const auto single = [](const Dims& dims, auto...) { return zeros(dims); };
  EXPECT_EQ(
      message_of<DTypeError>([&] { Linear::init(in, out, {.dtype = f64, .weight = single}); }),
      "Linear: initial values of a weight of f64 are f32[in=3,out=2]; make them of the dtype that "
      "the function is given");
}

}  // namespace
}  // namespace reel
