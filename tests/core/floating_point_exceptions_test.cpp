// No op raises floating-point exceptions that its elements do not cause. A program that traps them
// (feenableexcept) must not die because of unused vector lanes.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <string>
#include <vector>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/runtime/processor.h"
#include "reel/frontend/jit.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

/// Returns the names of the exceptions that fn raises.
template <class Fn>
std::string exceptions_of(Fn&& fn) {
  std::feclearexcept(FE_ALL_EXCEPT);
  fn();
  std::string names;
  if (std::fetestexcept(FE_INVALID)) names += "invalid ";
  if (std::fetestexcept(FE_DIVBYZERO)) names += "division by zero ";
  if (std::fetestexcept(FE_OVERFLOW)) names += "overflow ";
  return names;
}

constexpr std::int64_t kMaxElements =
    35;  // two vectors of every instruction set, and a part of one

class ExceptionsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    table_ = find_pointwise_table(GetParam());
    if (!table_) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  const PointwiseTable* table_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(InstructionSets, ExceptionsTest, ::testing::ValuesIn(kInstructionSets),
                         [](const auto& info) { return std::string(info.param); });

template <class T>
std::vector<T> ordinary_elements() {
  std::vector<T> elements;
  for (std::int64_t i = 0; i < kMaxElements; ++i)
    elements.push_back(static_cast<T>(0.5 + 0.125 * i));
  return elements;
}

/// Runs every loop of a dtype on every number of elements from one to kMaxElements.
template <class T>
void expect_quiet(const PointwiseTable& table, DType dtype) {
  const std::vector<T> a = ordinary_elements<T>();
  std::vector<T> out(kMaxElements);
  for (std::int64_t count = 1; count <= kMaxElements; ++count) {
    for (const auto& row : table.unary) {
      const UnaryLoop loop = row[column_of(dtype)];
      if (!loop) continue;
      EXPECT_EQ(exceptions_of([&] { loop(a.data(), out.data(), count); }), "")
          << "unary op " << &row - table.unary << " of " << count << ' ' << dtype;
    }
    for (const auto& row : table.flat) {
      const FlatLoop loop = row[column_of(dtype)];
      if (!loop) continue;
      EXPECT_EQ(exceptions_of([&] { loop(a.data(), a.data(), out.data(), count); }), "")
          << "binary op " << &row - table.flat << " of " << count << ' ' << dtype;
    }
  }
}

TEST_P(ExceptionsTest, EndsOfRowsRaiseNone) {
  expect_quiet<float>(*table_, f32);
  expect_quiet<double>(*table_, f64);
}

TEST_P(ExceptionsTest, RepeatedOperandsRaiseNone) {
  const std::vector<float> a = ordinary_elements<float>();
  for (std::int64_t count = 1; count <= kMaxElements; ++count)
    for (const bool first : {true, false}) {
      std::vector<float> out(kMaxElements);
      PointwiseRows rows{1, count};
      rows.repeats[first ? 0 : 1] = true;
      const void* const in[] = {a.data(), a.data()};
      const RowsLoop loop = table_->binary[static_cast<int>(Binary::div)][column_of(f32)];
      EXPECT_EQ(exceptions_of([&] { loop(in, out.data(), rows); }), "") << count;
    }
}

/// Numbers at which functions are 0 or saturate, and are still defined.
TEST_P(ExceptionsTest, SaturatingFunctionsRaiseNone) {
  const auto raised = [&](Unary op, DType dtype, double x) {
    const std::vector<float> f32s(kMaxElements, static_cast<float>(x));
    const std::vector<double> f64s(kMaxElements, x);
    std::vector<double> out(kMaxElements);
    return exceptions_of([&] {
      table_->unary[static_cast<int>(op)][column_of(dtype)](
          dtype == f32 ? static_cast<const void*>(f32s.data()) : f64s.data(), out.data(),
          kMaxElements);
    });
  };
  for (const DType dtype : {f32, f64})
    for (const double x : {-50., -100., -1e4, -1e10, -1e30, -HUGE_VAL}) {
      for (const Unary op : {Unary::exp, Unary::expm1, Unary::tanh, Unary::sigmoid, Unary::softplus,
                             Unary::erf, Unary::gelu, Unary::relu, Unary::arctan})
        EXPECT_EQ(raised(op, dtype, x), "") << static_cast<int>(op) << ' ' << dtype << " of " << x;
      for (const Unary op : {Unary::tanh, Unary::sigmoid, Unary::erf, Unary::gelu, Unary::arctan})
        EXPECT_EQ(raised(op, dtype, -x), "")
            << static_cast<int>(op) << ' ' << dtype << " of " << -x;
      if (!std::isfinite(x)) continue;
      EXPECT_EQ(raised(Unary::sin, dtype, x) + raised(Unary::cos, dtype, x), "") << x;
    }
}

TEST_P(ExceptionsTest, PowersAndRemaindersRaiseThoseOfTheStandardLibrary) {
  const auto raised = [&](Binary op, float x, float y) {
    const std::vector<float> a(kMaxElements, x), b(kMaxElements, y);
    std::vector<float> out(kMaxElements);
    return exceptions_of([&] {
      table_->flat[static_cast<int>(op)][column_of(f32)](a.data(), b.data(), out.data(),
                                                         kMaxElements);
    });
  };
  for (const auto& [x, y] : std::vector<std::pair<float, float>>{{0.f, 2.f},
                                                                 {0.f, 0.5f},
                                                                 {0.f, 100.f},
                                                                 {1e10f, 2.f},
                                                                 {1e30f, 1.f},
                                                                 {1.f, INFINITY},
                                                                 {2.f, -100.f},
                                                                 {-2.f, 3.f},
                                                                 {1e-30f, 0.5f},
                                                                 {10.f, -50.f},
                                                                 {-10.f, -51.f},
                                                                 {1e10f, -10.f},
                                                                 {2.f, -63.f},
                                                                 {INFINITY, -3.f}})
    EXPECT_EQ(raised(Binary::pow, x, y), "") << x << " to " << y;
  EXPECT_EQ(raised(Binary::pow, 0, -2), "division by zero ");
  EXPECT_EQ(raised(Binary::pow, 1e30f, 2), "overflow ");
  for (const float y : {1e30f, 1e38f, 3.f}) {
    EXPECT_EQ(raised(Binary::mod, 2, y), "") << y;
    EXPECT_EQ(raised(Binary::floor_divide, 2, y), "") << y;
  }
  EXPECT_EQ(raised(Binary::floor_divide, 2, 1e-40f), "overflow ");
  EXPECT_EQ(raised(Binary::floor_divide, 1e-39f, 1e-40f), "");
}

TEST_P(ExceptionsTest, LogarithmsRaiseThoseOfTheStandardLibraryAtTheirEnds) {
  const auto raised = [&](Unary op, double x) {
    std::string names;
    const std::vector<float> f32s(kMaxElements, static_cast<float>(x));
    const std::vector<double> f64s(kMaxElements, x);
    std::vector<double> out(kMaxElements);
    names += exceptions_of(
        [&] { table_->unary[static_cast<int>(op)][0](f32s.data(), out.data(), kMaxElements); });
    return names + exceptions_of([&] {
             table_->unary[static_cast<int>(op)][1](f64s.data(), out.data(), kMaxElements);
           });
  };
  for (const double x : {HUGE_VAL, 1e30, 0., -0.5}) EXPECT_EQ(raised(Unary::log1p, x), "") << x;
  EXPECT_EQ(raised(Unary::log1p, -1), "division by zero division by zero ");
}

TEST(PowersTest, NegativeExponentsAgreeWithTheStandardLibrary) {
  for (const float x : {2.f, -2.f, 3.f, 10.f, 1e-3f, 7e5f})
    for (const float y : {-2.f, -3.f, -7.f, -13.f, -40.f, -60.f, -63.f}) {
      const float got = pow(scalar(x), scalar(y)).item<float>(), wanted = std::pow(x, y);
      if (std::isinf(wanted))
        EXPECT_EQ(got, wanted) << x << " to " << y;
      else if (std::abs(wanted) > 1e-37f)
        EXPECT_NEAR(got / wanted, 1, 2e-5) << x << " to " << y;
      else  // no normal number
        EXPECT_NEAR(got, wanted, 1.2e-38f) << x << " to " << y;
    }
}

/// An infinite element times those that are there is infinite; lanes behind the last column are not
/// there. Also for programs that trap exceptions.
TEST(ProductExceptionsTest, InfiniteElementsRaiseNone) {
  const bool traps = feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) != -1;
#ifdef __x86_64__  // processors of aarch64 need not trap
  ASSERT_TRUE(traps);
#endif
  for (const DType dtype : {f32, f64})
    for (const std::int64_t m : {1, 3, 64})
      for (const std::int64_t n : {1, 5, 17, 33, 300})
        for (const std::int64_t k : {1, 17, 300}) {
          const Tensor a = full({m, k}, INFINITY, dtype), b = ones({k, n}, dtype),
                       turned = transpose(ones({n, k}, dtype), {1, 0});
          EXPECT_EQ(exceptions_of([&] { matmul(a, b), matmul(a, turned); }), "")
              << m << 'x' << k << 'x' << n << ' ' << dtype;
        }
  if (traps) fedisableexcept(FE_ALL_EXCEPT);
}

class EveryOpExceptionsTest : public ::testing::TestWithParam<const Op*> {};
INSTANTIATE_TEST_SUITE_P(Ops, EveryOpExceptionsTest,
                         ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(EveryOpExceptionsTest, SamplesRaiseNone) {
  const Op& op = *GetParam();
  if (!op.samples) return;
  for (const OpSample& sample : op.samples())
    for (const bool as_f64 : {false, true}) {
      const Tensors inputs = draw_sample(sample, as_f64);
      EXPECT_EQ(exceptions_of([&] { bind_all(op, inputs, sample.attrs); }), "");
    }
}

TEST(ReductionExceptionsTest, RowsOfEveryLengthRaiseNone) {
  for (std::int64_t n = 1; n <= kMaxElements; ++n)
    for (const DType dtype : {f32, f64}) {
      const Tensor x = range(Dim(2 * n), dtype) * 30 - 2000;
      const auto raised = [](const Tensor& x, int axis) {
        return exceptions_of([&] {
          softmax(x, axis), log_softmax(x, axis), logsumexp(x, axis), sum(x, axis), max(x, axis);
          argmin(x, axis), mean(x, axis), variance(x, axis), cumsum(x, axis);
        });
      };
      EXPECT_EQ(raised(reshape(x, {2, n}), 1), "") << n << ' ' << dtype;
      EXPECT_EQ(raised(reshape(x, {2, n}), 0), "") << n << ' ' << dtype;
    }
}

TEST(ReductionExceptionsTest, RowsOfNothingRaiseNone) {
  const Tensor x = full({3, 20}, -INFINITY);
  const std::string raised = exceptions_of([&] {
    for (const int axis : {0, 1}) softmax(x, axis), log_softmax(x, axis), logsumexp(x, axis);
  });
  EXPECT_EQ(raised, "");
}

TEST(FusedExceptionsTest, ChainsOfEveryLengthRaiseNone) {
  const auto f = jit([](const Tensor& a, const Tensor& b) {
    return sqrt(a / b) * maximum(a, b) / (log(a) + a / (a + b)) + square(b) / a;
  });
  for (std::int64_t n = 1; n <= kMaxElements; ++n)
    for (const DType dtype : {f32, f64}) {
      const Tensor a = range(n, dtype) + 1.5, b = range(n, dtype) * 0.25 + 3.;
      EXPECT_EQ(exceptions_of([&] { f(a, b); }), "") << n << ' ' << dtype;
    }
}

TEST(FusedExceptionsTest, SaturatingFunctionsInChainsRaiseNone) {
  const auto f = jit([](const Tensor& x) { return exp(x) + (tanh(x) - 1) * sigmoid(x); });
  for (const DType dtype : {f32, f64})
    for (const double x : {-50., -89., -100., -1e4, -1e30, -HUGE_VAL})
      for (const std::int64_t n : {1, 13, 40}) {
        const Tensor all = full({n}, x, dtype);
        EXPECT_EQ(exceptions_of([&] { f(all); }), "") << n << ' ' << dtype << " of " << x;
      }
}

}  // namespace
}  // namespace reel
