// Loops of element-wise ops, on every instruction set of the processor.
#include "reel/core/ops/elementwise/pointwise_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "reel/core/runtime/processor.h"

namespace reel {
namespace {

class PointwiseKernelsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    table_ = find_pointwise_table(GetParam());
    if (!table_) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  UnaryLoop unary(Unary op, DType dtype) const {
    return table_->unary[static_cast<int>(op)][column_of(dtype)];
  }
  RowsLoop binary(Binary op, DType dtype) const {
    return table_->binary[static_cast<int>(op)][column_of(dtype)];
  }

  const PointwiseTable* table_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(InstructionSets, PointwiseKernelsTest,
                         ::testing::ValuesIn(kInstructionSets),
                         [](const auto& info) { return std::string(info.param); });

constexpr std::int64_t kMaxElements = 67;

/// Positive elements of any dtype, as bytes; large enough for all operands and results.
struct Buffer {
  alignas(64) unsigned char bytes[(kMaxElements + 1) * 8];

  Buffer() { std::memset(bytes, 0x5A, sizeof bytes); }
  static Buffer random(DType dtype, unsigned seed) {
    Buffer result;
    std::mt19937 engine(seed);
    for (std::int64_t i = 0; i < kMaxElements; ++i) {
      const double value = std::uniform_real_distribution<double>(0.25, 4)(engine);
      visit(dtype, [&](auto zero) {
        using T = decltype(zero);
        const T element =
            std::is_same_v<T, bool> ? static_cast<T>(value > 2) : static_cast<T>(value);
        std::memcpy(result.bytes + i * sizeof(T), &element, sizeof(T));
      });
    }
    return result;
  }
};

constexpr DType kDTypeList[] = {f32, f64, i32, i64, boolean};

bool gives_booleans(Binary op) { return op >= Binary::equal && op <= Binary::logical_xor; }

/// Expects that loop(begin, count, out) gives the last `count` of kMaxElements elements the same
/// bits as a whole run, for every count, and writes nothing behind them.
template <class Loop>
void expect_tails_of_the_whole(Loop&& loop, std::size_t width, int op) {
  const Buffer untouched;
  Buffer whole;
  loop(0, kMaxElements, whole.bytes);
  for (std::int64_t size = 0; size <= kMaxElements; ++size) {
    const std::int64_t begin = kMaxElements - size;
    Buffer part;
    loop(begin, size, part.bytes);
    ASSERT_EQ(std::memcmp(part.bytes, whole.bytes + begin * width, size * width), 0)
        << "op " << op << " size " << size;
    ASSERT_EQ(
        std::memcmp(part.bytes + size * width, untouched.bytes, sizeof part.bytes - size * width),
        0);
  }
}

// An element's bits depend neither on its place in a row nor on the row's length, and nothing is
// written behind the row.
TEST_P(PointwiseKernelsTest, TailsOfUnaryLoopsGiveTheBitsOfWholeVectors) {
  for (int op = 0; op < static_cast<int>(Unary::count); ++op)
    for (const DType dtype : kDTypeList) {
      const UnaryLoop loop = unary(static_cast<Unary>(op), dtype);
      if (!loop) continue;
      const std::size_t width = size_of(dtype);
      const Buffer x = Buffer::random(dtype, 1);
      expect_tails_of_the_whole([&](std::int64_t begin, std::int64_t count,
                                    void* out) { loop(x.bytes + begin * width, out, count); },
                                width, op);
    }
}

TEST_P(PointwiseKernelsTest, TailsOfBinaryLoopsGiveTheBitsOfWholeVectors) {
  for (int op = 0; op < static_cast<int>(Binary::count); ++op)
    for (const DType dtype : kDTypeList) {
      const RowsLoop loop = binary(static_cast<Binary>(op), dtype);
      if (!loop) continue;
      const std::size_t width = size_of(dtype),
                        out_width = gives_booleans(static_cast<Binary>(op)) ? 1 : width;
      const Buffer a = Buffer::random(dtype, 1), b = Buffer::random(dtype, 2);
      expect_tails_of_the_whole(
          [&](std::int64_t begin, std::int64_t count, void* out) {
            const void* const in[] = {a.bytes + begin * width, b.bytes + begin * width};
            loop(in, out, PointwiseRows{.columns = count});
          },
          out_width, op);
    }
}

TEST_P(PointwiseKernelsTest, ARepeatedOperandGivesTheBitsOfACopiedOne) {
  for (int op = 0; op < static_cast<int>(Binary::count); ++op)
    for (const DType dtype : kDTypeList) {
      const RowsLoop loop = binary(static_cast<Binary>(op), dtype);
      if (!loop) continue;
      const std::size_t width = size_of(dtype),
                        out_width = gives_booleans(static_cast<Binary>(op)) ? 1 : width;
      const Buffer x = Buffer::random(dtype, 1);
      Buffer copies;
      for (std::int64_t i = 0; i < kMaxElements; ++i)
        std::memcpy(copies.bytes + i * width, x.bytes + 3 * width, width);
      for (const bool first : {true, false}) {
        Buffer expected, actual;
        const void *whole[] = {copies.bytes, x.bytes}, *single[] = {x.bytes + 3 * width, x.bytes};
        PointwiseRows rows{.columns = kMaxElements};
        rows.repeats[first ? 0 : 1] = true;
        if (!first) std::swap(whole[0], whole[1]), std::swap(single[0], single[1]);
        loop(whole, expected.bytes, PointwiseRows{.columns = kMaxElements});
        loop(single, actual.bytes, rows);
        ASSERT_EQ(std::memcmp(expected.bytes, actual.bytes, kMaxElements * out_width), 0)
            << "op " << op;
      }
    }
}

TEST_P(PointwiseKernelsTest, TheResultMayTakeAnOperandsPlace) {
  for (const DType dtype : {f32, f64, i32, i64}) {
    const Buffer x = Buffer::random(dtype, 1), y = Buffer::random(dtype, 2);
    for (const Binary op : {Binary::add, Binary::mul, Binary::div, Binary::maximum}) {
      Buffer expected, first = x, second = y;
      const void* const apart[] = {x.bytes, y.bytes};
      binary(op, dtype)(apart, expected.bytes, PointwiseRows{.columns = kMaxElements});
      const void *in_first[] = {first.bytes, y.bytes}, *in_second[] = {x.bytes, second.bytes};
      binary(op, dtype)(in_first, first.bytes, PointwiseRows{.columns = kMaxElements});
      binary(op, dtype)(in_second, second.bytes, PointwiseRows{.columns = kMaxElements});
      const std::size_t size = kMaxElements * size_of(dtype);
      ASSERT_EQ(std::memcmp(first.bytes, expected.bytes, size), 0);
      ASSERT_EQ(std::memcmp(second.bytes, expected.bytes, size), 0);
    }
    Buffer expected, in_place = x;
    unary(Unary::square, dtype)(x.bytes, expected.bytes, kMaxElements);
    unary(Unary::square, dtype)(in_place.bytes, in_place.bytes, kMaxElements);
    ASSERT_EQ(std::memcmp(in_place.bytes, expected.bytes, kMaxElements * size_of(dtype)), 0);
  }
}

/// Returns the largest relative error over an interval, in units of T's epsilon.
template <class T, class Loop, class Exact>
double worst(Loop loop, Exact exact, double low, double high) {
  constexpr int kCount = 4000;
  std::vector<T> x(kCount), y(kCount);
  for (int i = 0; i < kCount; ++i) x[i] = static_cast<T>(low + (high - low) * i / (kCount - 1));
  loop(x.data(), y.data(), kCount);
  double result = 0;
  for (int i = 0; i < kCount; ++i) {
    const long double expected = exact(static_cast<long double>(x[i]));
    if (expected == 0) continue;
    result = std::max(result, static_cast<double>(std::abs((y[i] - expected) / expected)) /
                                  std::numeric_limits<T>::epsilon());
  }
  return result;
}

TEST_P(PointwiseKernelsTest, FunctionsAreAccurate) {
  const auto exp = [](long double x) { return std::exp(x); };
  const auto log = [](long double x) { return std::log(x); };
  const auto tanh = [](long double x) { return std::tanh(x); };
  const auto sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(worst<float>(unary(Unary::exp, f32), exp, -80, 80), 2);
  EXPECT_LT(worst<float>(unary(Unary::log, f32), log, 0.01, 100), 2);
  EXPECT_LT(worst<float>(unary(Unary::tanh, f32), tanh, -10, 10), 2);
  EXPECT_LT(worst<float>(unary(Unary::sigmoid, f32), sigmoid, -80, 80), 3);
  EXPECT_LT(worst<double>(unary(Unary::exp, f64), exp, -700, 700), 2);
  EXPECT_LT(worst<double>(unary(Unary::log, f64), log, 0.01, 100), 2);
  EXPECT_LT(worst<double>(unary(Unary::tanh, f64), tanh, -20, 20), 3);
  EXPECT_LT(worst<double>(unary(Unary::sigmoid, f64), sigmoid, -700, 700), 3);
}

/// IEEE 754 demands the nearest number. An estimate that is refined, as xsimd has it for some
/// processors, is off by a last bit.
TEST_P(PointwiseKernelsTest, QuotientsRootsAndWholeNumbersAreExact) {
  constexpr int kCount = 1000;
  std::mt19937 engine(7);
  const auto check = [&]<class T>(DType dtype, T) {
    std::uniform_real_distribution<T> draw(-100, 100);
    std::vector<T> a(kCount), b(kCount), out(kCount);
    for (T& x : a) x = draw(engine);
    for (T& x : b) x = draw(engine);
    a[0] = T(-0.25), a[1] = T(0.5), a[2] = T(2.5), a[3] = std::numeric_limits<T>::infinity();
    b[4] = T(0), b[5] = std::numeric_limits<T>::denorm_min(), a[6] = std::numeric_limits<T>::max();
    const void* const in[] = {a.data(), b.data()};
    binary(Binary::div, dtype)(in, out.data(), PointwiseRows{.columns = kCount});
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(out[i], a[i] / b[i]) << a[i] << " / " << b[i];
    const auto expect_all = [&](Unary op, T (*exact)(T)) {
      unary(op, dtype)(a.data(), out.data(), kCount);
      for (int i = 0; i < kCount; ++i) {
        const T expected = exact(a[i]);
        if (std::isnan(expected)) continue;
        ASSERT_EQ(out[i], expected) << "op " << static_cast<int>(op) << " of " << a[i];
        ASSERT_EQ(std::signbit(out[i]), std::signbit(expected))
            << "op " << static_cast<int>(op) << " of " << a[i];
      }
    };
    expect_all(Unary::sqrt, std::sqrt);
    expect_all(Unary::round, std::nearbyint);
    expect_all(Unary::floor, std::floor);
    expect_all(Unary::ceil, std::ceil);
  };
  check(f32, 0.f);
  check(f64, 0.);
}

TEST_P(PointwiseKernelsTest, TanhAndSigmoidAtTheEnds) {
  const auto at = [&](Unary op, float x) {
    float y = 0;
    unary(op, f32)(&x, &y, 1);
    return y;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float x : {9.5f, 20.f, 100.f, 3e38f, kInfinity}) {
    EXPECT_EQ(at(Unary::tanh, x), 1) << x;
    EXPECT_EQ(at(Unary::tanh, -x), -1) << x;
  }
  for (const float x : {20.f, 88.f, 89.f, 100.f, 3e38f, kInfinity}) {
    EXPECT_EQ(at(Unary::sigmoid, x), 1) << x;
    EXPECT_EQ(at(Unary::sigmoid, -x) > 0, x < 88.5f) << x;
  }
  for (const float x : {0.f, 1e-45f, 1e-40f, 1e-38f, 1e-10f}) {
    EXPECT_EQ(at(Unary::tanh, x), x);
    EXPECT_EQ(std::signbit(at(Unary::tanh, -x)), true);
  }
  for (const Unary op : {Unary::tanh, Unary::sigmoid}) {
    EXPECT_TRUE(std::isnan(at(op, std::nanf(""))));
    EXPECT_TRUE(std::isnan(at(op, -std::nanf(""))));
  }
  EXPECT_LT(worst<float>(
                unary(Unary::tanh, f32), [](long double x) { return std::tanh(x); }, -1e-3, 1e-3),
            2);
  EXPECT_LT(worst<float>(
                unary(Unary::tanh, f32), [](long double x) { return std::tanh(x); }, -1, 1),
            2);
}

// The rest of a float by π/2 keeps all of its bits. It is smallest beside the multiples of π/2.
TEST_P(PointwiseKernelsTest, SinesOfFloatsAreWithinTwoUnitsOfTheLastPlace) {
  constexpr int kBeside = 8;
  std::vector<float> x;
  for (int quarters = 1; quarters < 63662; quarters += 7) {
    float beside = static_cast<float>(quarters * (std::acos(-1.) / 2));
    for (int i = 0; i < kBeside; ++i) beside = std::nextafter(beside, 0.f);
    for (int i = 0; i < 2 * kBeside; ++i, beside = std::nextafter(beside, 1e6f))
      x.push_back(quarters % 2 ? beside : -beside);
  }
  std::vector<float> y(x.size());
  for (const Unary op : {Unary::sin, Unary::cos}) {
    unary(op, f32)(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wide = static_cast<double>(x[i]);
      const double exact = op == Unary::sin ? std::sin(wide) : std::cos(wide);
      int exponent;
      std::frexp(exact, &exponent);
      most = std::max(most, std::abs(static_cast<double>(y[i]) - exact) *
                                std::ldexp(1., std::numeric_limits<float>::digits - exponent));
    }
    EXPECT_LT(most, 2) << (op == Unary::sin ? "sin" : "cos");
  }
}

TEST_P(PointwiseKernelsTest, FunctionsAreAccurateNearZeroAndFarAway) {
  const auto expm1 = [](long double x) { return std::expm1(x); };
  const auto log1p = [](long double x) { return std::log1p(x); };
  const auto sin = [](long double x) { return std::sin(x); };
  const auto cos = [](long double x) { return std::cos(x); };
  const auto softplus = [](long double x) { return std::log1p(std::exp(x)); };
  for (const double most : {1e-9, 1e-3, 1., 80.}) {
    EXPECT_LT(worst<float>(unary(Unary::expm1, f32), expm1, -most, most), 3) << most;
    EXPECT_LT(worst<double>(unary(Unary::expm1, f64), expm1, -most, most), 3) << most;
    EXPECT_LT(worst<float>(unary(Unary::softplus, f32), softplus, -most, most), 3) << most;
    EXPECT_LT(worst<double>(unary(Unary::softplus, f64), softplus, -most, most), 3) << most;
    EXPECT_LT(worst<float>(unary(Unary::log1p, f32), log1p, -most / (1 + most), most), 2) << most;
    EXPECT_LT(worst<double>(unary(Unary::log1p, f64), log1p, -most / (1 + most), most), 2) << most;
  }
  for (const double most : {1e-3, 10., 1e4, 1e9, 1e30}) {
    EXPECT_LT(worst<float>(unary(Unary::sin, f32), sin, -most, most), 3) << most;
    EXPECT_LT(worst<double>(unary(Unary::sin, f64), sin, -most, most), 3) << most;
    EXPECT_LT(worst<float>(unary(Unary::cos, f32), cos, -most, most), 3) << most;
    EXPECT_LT(worst<double>(unary(Unary::cos, f64), cos, -most, most), 3) << most;
  }
}

TEST_P(PointwiseKernelsTest, ArctanIsAccurateInAndBesideEachOfItsForms) {
  const auto arctan = [](long double x) { return std::atan(x); };
  for (const double most : {1e-9, 0.4, 0.5, 0.7, 2.3, 2.5, 1e3, 1e30}) {
    EXPECT_LT(worst<float>(unary(Unary::arctan, f32), arctan, -most, most), 3) << most;
    EXPECT_LT(worst<double>(unary(Unary::arctan, f64), arctan, -most, most), 3) << most;
  }
}

TEST_P(PointwiseKernelsTest, TheErrorFunctionAndGeluAreAccurate) {
  const auto erf = [](long double x) { return std::erf(x); };
  const auto below = [](long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; };
  const auto gelu = [&](long double x) { return x * below(x); };
  const auto slope = [&](long double x) {
    return below(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0L));
  };
  const auto grad = [&](DType dtype) {
    return [this, dtype](const void* x, void* y, std::int64_t count) {
      const float narrow = 1;
      const double wide = 1;
      const void* const in[] = {x, dtype == f32 ? static_cast<const void*>(&narrow) : &wide};
      PointwiseRows rows{.columns = count};
      rows.repeats[1] = true;
      binary(Binary::gelu_grad, dtype)(in, y, rows);
    };
  };
  for (const double most : {1e-9, 0.5, 1.5, 7.}) {
    EXPECT_LT(worst<float>(unary(Unary::erf, f32), erf, -most, most), 3) << most;
    EXPECT_LT(worst<double>(unary(Unary::erf, f64), erf, -most, most), 3) << most;
  }
  EXPECT_LT(worst<float>(unary(Unary::gelu, f32), gelu, -1, 30), 8);
  EXPECT_LT(worst<double>(unary(Unary::gelu, f64), gelu, -1, 30), 8);
  EXPECT_LT(worst<float>(grad(f32), slope, -0.5, 30), 8);
  EXPECT_LT(worst<double>(grad(f64), slope, -0.5, 30), 8);
  // Without FMA, exp has a relative error of about its argument's rounding, x²/2.
  const bool has_fma = std::string(GetParam()) != "sse42";
  for (const double least : {-5., -12.}) {
    const double bound = has_fma ? 8 : least * least / 2 + 8;
    EXPECT_LT(worst<float>(unary(Unary::gelu, f32), gelu, least, -1), bound) << least;
    EXPECT_LT(worst<double>(unary(Unary::gelu, f64), gelu, least, -1), bound) << least;
    EXPECT_LT(worst<float>(grad(f32), slope, least, -1), bound) << least;
    EXPECT_LT(worst<double>(grad(f64), slope, least, -1), bound) << least;
  }
}

TEST_P(PointwiseKernelsTest, PowersAreAccurate) {
  for (const double exponent : {0.5, 2.0, -3.0, 2.7, -1.3, 17.0}) {
    const auto exact = [&](long double x) {
      return std::pow(x, static_cast<long double>(static_cast<float>(exponent)));
    };
    const auto loop = [&](DType dtype) {
      return [&, dtype](const void* x, void* y, std::int64_t count) {
        const float narrow = static_cast<float>(exponent);
        const double wide = narrow;
        const void* const in[] = {x, dtype == f32 ? static_cast<const void*>(&narrow) : &wide};
        PointwiseRows rows{.columns = count};
        rows.repeats[1] = true;
        binary(Binary::pow, dtype)(in, y, rows);
      };
    };
    EXPECT_LT(worst<float>(loop(f32), exact, 0.1, 10), 16) << exponent;
    EXPECT_LT(worst<double>(loop(f64), exact, 0.1, 10), 16) << exponent;
  }
}

template <class T>
void expect_same(T actual, T expected, const std::string& what, double ulps = 4) {
  const double tolerance =
      ulps * std::numeric_limits<T>::epsilon() * std::max(T{1}, std::abs(expected));
  EXPECT_TRUE((std::isnan(actual) && std::isnan(expected)) || actual == expected ||
              (std::isfinite(expected) && std::abs(actual - expected) <= tolerance))
      << what << " gives " << actual << " instead of " << expected;
}

/// Compares loops with the standard library at all special values and some others.
template <class T, class Find>
void check_special_values(const Find& find_unary, RowsLoop pow) {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> x = {
      -Limits::infinity(), -1000,  T(-2.5), -2,     -1, T(-0.5), T(-0.), 0,
      Limits::min() / 8,   T(0.5), 1,       T(2.5), 40, 81,      1000,   Limits::infinity(),
      Limits::quiet_NaN()};
  std::vector<T> more = {Limits::lowest(), Limits::max(), -Limits::denorm_min(),
                         T(-1e22),         T(1e22),       T(-1.5),
                         T(1.5),           T(-0.25),      T(-39.5)};
  more.insert(more.end(), x.begin(), x.end());
  const std::pair<Unary, T (*)(T)> functions[] = {
      {Unary::neg, [](T x) { return -x; }},
      {Unary::abs, [](T x) { return std::abs(x); }},
      {Unary::sign, [](T x) { return x > 0   ? T{1}
                                     : x < 0 ? T{-1}
                                             : x + T{0}; }},
      {Unary::floor, [](T x) { return std::floor(x); }},
      {Unary::ceil, [](T x) { return std::ceil(x); }},
      {Unary::round, [](T x) { return std::nearbyint(x); }},
      {Unary::expm1, [](T x) { return std::expm1(x); }},
      {Unary::log1p, [](T x) { return std::log1p(x); }},
      {Unary::sin, [](T x) { return std::sin(x); }},
      {Unary::cos, [](T x) { return std::cos(x); }},
      {Unary::arctan, [](T x) { return std::atan(x); }},
      {Unary::softplus, [](T x) { return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x))); }},
      {Unary::erf, [](T x) { return std::erf(x); }},
      {Unary::gelu,
       [](T x) { return x < -40  ? -T{0}
                        : x > 40 ? x
                                 : x * std::erfc(-x / std::sqrt(T{2})) / 2; }},
      {Unary::exp, [](T x) { return std::exp(x); }},
      {Unary::log, [](T x) { return std::log(x); }},
      {Unary::sqrt, [](T x) { return std::sqrt(x); }},
      {Unary::tanh, [](T x) { return std::tanh(x); }},
      {Unary::sigmoid, [](T x) { return 1 / (1 + std::exp(-x)); }},
      {Unary::relu, [](T x) { return x <= 0 ? 0 : x; }},
  };
  std::vector<T> y(more.size());
  for (const auto& [op, exact] : functions) {
    find_unary(op)(more.data(), y.data(), static_cast<std::int64_t>(more.size()));
    for (std::size_t i = 0; i < more.size(); ++i) {
      const std::string what =
          "op " + std::to_string(static_cast<int>(op)) + " of " + std::to_string(more[i]);
      expect_same(y[i], exact(more[i]), what);
      if (y[i] == 0 && op != Unary::relu) {
        EXPECT_EQ(std::signbit(y[i]), std::signbit(exact(more[i]))) << what;
      }
    }
  }
  for (const T exponent : x) {
    PointwiseRows rows{.columns = static_cast<std::int64_t>(x.size())};
    rows.repeats[1] = true;
    const void* const in[] = {x.data(), &exponent};
    pow(in, y.data(), rows);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T exact = std::pow(x[i], exponent);
      const double size =
          std::abs(std::log(std::abs(exact)));  // exp(b log a): its error grows with the argument
      expect_same(y[i], exact, std::to_string(x[i]) + " to the " + std::to_string(exponent),
                  std::isfinite(size) ? 4 + 2 * size : 0);
    }
  }
}

TEST_P(PointwiseKernelsTest, SpecialValuesAreThoseOfTheStandardLibrary) {
  check_special_values<float>([&](Unary op) { return unary(op, f32); }, binary(Binary::pow, f32));
  check_special_values<double>([&](Unary op) { return unary(op, f64); }, binary(Binary::pow, f64));
}

/// Returns the quotient and remainder as NumPy defines them, computed with the C library's fmod.
template <class T>
std::pair<T, T> divided(T a, T b) {
  T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(T{0}, b);
  } else if ((rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (b == 0) return {rest, a / b};
  if (quotient == 0) return {rest, std::copysign(T{0}, a / b)};
  const T below = std::floor(quotient);
  return {rest, quotient - below > T(0.5) ? below + 1 : below};
}

template <class T>
void expect_remainders(RowsLoop mod, RowsLoop floor_divide) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN(),
          least = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max(),
          normal = std::numeric_limits<T>::min(), eps = std::numeric_limits<T>::epsilon();
  const T edges[] = {0,      -T{0},   1,           -1,        2,      3,       -3,        T(0.1),
                     -0.5,   inf,     -inf,        nan,       least,  -least,  most,      -most,
                     normal, 1 + eps, 1 - eps / 2, 5 * least, T(1e6), -T(1e7), T(1 / 3.), 7};
  std::vector<T> a, b;
  for (const T x : edges)
    for (const T y : edges) a.push_back(x), b.push_back(y);
  std::mt19937_64 random(5);
  // Quotients of all sizes, and quotients next to whole numbers.
  for (int i = 0; i < 40000; ++i) {
    std::uniform_real_distribution<T> unit(-1, 1);
    const T y = std::ldexp(unit(random), static_cast<int>(random() % 30) - 15);
    const T n = static_cast<T>(random() % (1 << (random() % 26)));
    T x = i % 2 ? std::ldexp(unit(random), static_cast<int>(random() % 60) - 30) : n * y;
    if (i % 4 == 0) x = std::nextafter(x, i % 8 ? inf : -inf);
    a.push_back(x), b.push_back(y);
  }
  std::vector<T> rest(a.size()), quotient(a.size());
  const void* const in[] = {a.data(), b.data()};
  const PointwiseRows rows{.columns = static_cast<std::int64_t>(a.size())};
  mod(in, rest.data(), rows);
  floor_divide(in, quotient.data(), rows);
  const auto same = [](T x, T y) {
    return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto [r, q] = divided(a[i], b[i]);
    ASSERT_TRUE(same(rest[i], r)) << a[i] << " mod " << b[i] << ": " << rest[i] << ", not " << r;
    ASSERT_TRUE(same(quotient[i], q))
        << a[i] << " over " << b[i] << ": " << quotient[i] << ", not " << q;
  }
}

TEST_P(PointwiseKernelsTest, RemaindersOfFloatsAreThoseOfTheCLibrary) {
  expect_remainders<float>(binary(Binary::mod, f32), binary(Binary::floor_divide, f32));
  expect_remainders<double>(binary(Binary::mod, f64), binary(Binary::floor_divide, f64));
}

}  // namespace
}  // namespace reel
