// Machine code for chains of element-wise ops gives the bits of the processor's loops, called one
// step after the other.
#include "reel/core/ops/elementwise/pointwise_code.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/runtime/instruction_set.h"

namespace reel {
namespace {

constexpr Unary kUnary[] = {Unary::neg,  Unary::abs, Unary::square, Unary::relu,
                            Unary::sqrt, Unary::exp, Unary::tanh,   Unary::sigmoid};
/// The last three have code for f32 only.
template <class T>
std::span<const Unary> unary_ops() {
  return std::span(kUnary).first(sizeof(T) == 4 ? 8 : 5);
}
constexpr Binary kBinary[] = {Binary::add,       Binary::sub,         Binary::mul,
                              Binary::div,       Binary::maximum,     Binary::minimum,
                              Binary::tanh_grad, Binary::sigmoid_grad};

/// An operand or a result, with gaps between its rows.
template <class T>
struct TestRows {
  std::int64_t rows, columns, step;
  std::vector<T> data;

  TestRows(std::int64_t rows, std::int64_t columns, std::int64_t gap)
      : rows(rows),
        columns(columns),
        step(columns + gap),
        data(static_cast<std::size_t>(rows * step + 1), T(7)) {}
  T* row(std::int64_t r) { return data.data() + r * step; }
};

template <class T>
T drawn(std::mt19937& engine) {
  constexpr T kSpecial[] = {T(0),
                            T(-0.),
                            T(1),
                            T(-1),
                            std::numeric_limits<T>::infinity(),
                            -std::numeric_limits<T>::infinity(),
                            std::numeric_limits<T>::quiet_NaN(),
                            std::numeric_limits<T>::denorm_min(),
                            std::numeric_limits<T>::max()};
  const unsigned k = engine() % 40;
  return k < std::size(kSpecial) ? kSpecial[k]
                                 : static_cast<T>(std::normal_distribution<double>(0, 2)(engine));
}

/// Expects equal bits; any NaN equals any other.
template <class T>
void expect_same_bits(const std::vector<T>& got, const std::vector<T>& expected,
                      const std::string& what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != got[i] && expected[i] != expected[i]) continue;
    ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(T)), 0)
        << what << ", element " << i << ": " << got[i] << " for " << expected[i];
  }
}

/// Returns the results of a chain by loops, step by step, on whole rows.
template <class T>
std::vector<std::vector<T>> by_loops(const Chain& chain, std::vector<TestRows<T>>& operands,
                                     std::int64_t row, std::int64_t columns) {
  const int column = column_of(sizeof(T) == 4 ? f32 : f64);
  std::vector<std::vector<T>> values;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const T* from = operands[k].row(row);
    std::vector<T> value;
    for (std::int64_t i = 0; i < columns; ++i) value.push_back(from[chain.repeats[k] ? 0 : i]);
    values.push_back(value);
  }
  for (const Chain::Step& step : chain.steps) {
    std::vector<T> made(static_cast<std::size_t>(columns));
    const auto& a = values[static_cast<std::size_t>(step.in[0])];
    if (!step.op) {
      made = a;
    } else if (const Unary* op = std::get_if<Unary>(&*step.op)) {
      pointwise_table().unary[static_cast<int>(*op)][column](a.data(), made.data(), columns);
    } else {
      const auto& b = values[static_cast<std::size_t>(step.in[1])];
      pointwise_table().flat[static_cast<int>(std::get<Binary>(*step.op))][column](
          a.data(), b.data(), made.data(), columns);
    }
    values.push_back(made);
  }
  return values;
}

template <class T>
void expect_as_loops(const Chain& chain, std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<TestRows<T>> operands, results, expected;
  for (const bool repeats : chain.repeats) {
    operands.emplace_back(rows, repeats ? 1 : columns, engine() % 4);
    for (T& x : operands.back().data) x = drawn<T>(engine);
  }
  for (std::size_t k = 0; k < chain.results.size(); ++k)
    results.emplace_back(rows, columns, engine() % 4);
  expected = results;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto values = by_loops(chain, operands, row, columns);
    for (std::size_t k = 0; k < chain.results.size(); ++k) {
      const std::vector<T>& value = values[static_cast<std::size_t>(chain.results[k])];
      std::copy(value.begin(), value.end(), expected[k].row(row));
    }
  }
  const auto code = code_of(chain);
  ASSERT_TRUE(code);
  ChainRun run{};
  run.rows = rows;
  run.columns = columns;
  std::size_t place = 0;
  for (std::vector<TestRows<T>>* side : {&operands, &results})
    for (TestRows<T>& at : *side) {
      run.at[place] = reinterpret_cast<char*>(at.row(0));
      run.step[place++] = at.step * static_cast<std::int64_t>(sizeof(T));
    }
  code->run(run);
  for (std::size_t k = 0; k < results.size(); ++k)
    expect_same_bits(results[k].data, expected[k].data, chain.key());
}

template <class T>
class PointwiseCodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (instruction_set() != "avx512" && instruction_set() != "avx2")
      GTEST_SKIP() << "code is made for AVX-512 and AVX2 only";
  }
  static Chain with_operands(std::vector<bool> repeats) {
    Chain chain;
    chain.item = sizeof(T);
    chain.repeats = std::move(repeats);
    return chain;
  }
};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PointwiseCodeTest, Floats);

TYPED_TEST(PointwiseCodeTest, EveryOpGivesTheBitsOfItsLoop) {
  for (const std::int64_t columns : {1, 5, 8, 16, 31, 200})
    for (const bool repeats : {false, true}) {
      for (const Unary op : unary_ops<TypeParam>()) {
        ASSERT_TRUE(has_code(op, sizeof(TypeParam) == 4 ? f32 : f64));
        Chain chain = this->with_operands({repeats});
        chain.results = {chain.append(op, 0, -1)};
        expect_as_loops<TypeParam>(chain, 3, columns, 5);
      }
      for (const Binary op : kBinary) {
        ASSERT_TRUE(has_code(op, sizeof(TypeParam) == 4 ? f32 : f64));
        Chain chain = this->with_operands({false, repeats});
        chain.results = {chain.append(op, 0, 1), chain.append(op, 1, 0)};
        expect_as_loops<TypeParam>(chain, 3, columns, 6);
      }
    }
}

TEST(FunctionCodeTest, GivesTheBitsOfItsLoopNearAndFar) {
  if (instruction_set() != "avx512" && instruction_set() != "avx2")
    GTEST_SKIP() << "code is made for AVX-512 and AVX2 only";
  std::vector<float> x, loop, got;
  for (float at = 1e-6f; at < 1000; at *= 1.0003f) x.insert(x.end(), {at, -at});
  loop.resize(x.size()), got.resize(x.size());
  for (const Unary op : {Unary::exp, Unary::tanh, Unary::sigmoid}) {
    Chain chain;
    chain.repeats = {false};
    chain.results = {chain.append(op, 0, -1)};
    ChainRun run{.rows = 1, .columns = std::ssize(x), .at = {}, .step = {}};
    run.at[0] = reinterpret_cast<char*>(x.data());
    run.at[1] = reinterpret_cast<char*>(got.data());
    code_of(chain)->run(run);
    pointwise_table().unary[static_cast<int>(op)][column_of(f32)](x.data(), loop.data(),
                                                                  std::ssize(x));
    expect_same_bits(got, loop, chain.key());
  }
}

TYPED_TEST(PointwiseCodeTest, DrawnChainsGiveTheBitsOfTheirLoops) {
  std::mt19937 engine(11);
  int tried = 0;
  while (tried < 300) {
    const int operands = 1 + static_cast<int>(engine() % 14);
    std::vector<bool> repeats;
    for (int k = 0; k < operands; ++k) repeats.push_back(engine() % 4 == 0);
    Chain chain = this->with_operands(repeats);
    const int steps = 1 + static_cast<int>(engine() % 40);
    for (int s = 0; s < steps; ++s) {
      // Prefers recent values, so that not all stay live to the end.
      const auto value = [&] {
        const int last = operands + s, back = 1 + static_cast<int>(engine() % 6);
        return engine() % 2 ? static_cast<int>(engine() % static_cast<unsigned>(last))
                            : std::max(0, last - back);
      };
      const int a = value(), b = value();
      if (engine() % 8 == 0)
        chain.append(std::nullopt, a, -1);
      else if (engine() % 3 == 0)
        chain.append(unary_ops<TypeParam>()[engine() % unary_ops<TypeParam>().size()], a, -1);
      else
        chain.append(kBinary[engine() % std::size(kBinary)], a, b);
    }
    const int most = std::min(8, kMaxChainPlaces - operands);
    for (int k = 0; k < most; ++k)
      if (k == 0 || engine() % 2)
        chain.results.push_back(operands +
                                static_cast<int>(engine() % static_cast<unsigned>(steps)));
    if (chain.registers() > chain_registers()) continue;
    ++tried;
    expect_as_loops<TypeParam>(chain, 1 + engine() % 4, 1 + engine() % 70, engine());
  }
}

// Nearly as many values as there are registers, and more places than registers of pointers.
TYPED_TEST(PointwiseCodeTest, ManyOperandsAndResults) {
  const int operands = chain_registers() < 16 ? 12 : 16, results = operands - 3;
  Chain chain = this->with_operands(std::vector<bool>(static_cast<std::size_t>(operands), false));
  for (int k = 0; k < results; ++k) chain.results.push_back(chain.append(Binary::mul, k, k + 1));
  EXPECT_LE(chain.registers(), chain_registers());
  EXPECT_GT(chain.registers(), results);
  expect_as_loops<TypeParam>(chain, 2, 37, 3);
}

TYPED_TEST(PointwiseCodeTest, ResultsMayLieOverOperands) {
  using T = TypeParam;
  std::vector<T> a(45), b(45), sums(45), products(45);
  std::mt19937 engine(2);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = drawn<T>(engine), b[i] = drawn<T>(engine);
    sums[i] = a[i] + b[i], products[i] = a[i] * b[i];
  }
  Chain chain = this->with_operands({false, false});
  chain.results = {chain.append(Binary::add, 0, 1), chain.append(Binary::mul, 0, 1)};
  ChainRun run{.rows = 1, .columns = 45, .at = {}, .step = {}};
  run.at[0] = run.at[2] = reinterpret_cast<char*>(a.data());
  run.at[1] = run.at[3] = reinterpret_cast<char*>(b.data());
  code_of(chain)->run(run);
  expect_same_bits(a, sums, "sums");
  expect_same_bits(b, products, "products");
}

TYPED_TEST(PointwiseCodeTest, IsMadeOnceForChainsThatAreAlike) {
  Chain chain = this->with_operands({false, true});
  chain.results = {chain.append(Binary::mul, 0, 1)};
  const auto code = code_of(chain);
  EXPECT_EQ(code_of(chain), code);
  Chain other = this->with_operands({true, false});
  other.results = {other.append(Binary::mul, 0, 1)};
  EXPECT_NE(code_of(other), code);
}

TEST(HasCodeTest, OnlySimpleOpsHaveCode) {
  EXPECT_FALSE(has_code(Unary::log, f32));
  EXPECT_FALSE(has_code(Binary::pow, f32));
  EXPECT_FALSE(has_code(Binary::less, f32));
  EXPECT_FALSE(has_code(Binary::add, i32));
  EXPECT_FALSE(has_code(WhereLoop{}, f32));
  EXPECT_FALSE(has_code(CastLoop{}, f32));
}

TEST(HasCodeTest, FunctionsHaveCodeForFloatsOnly) {
  for (const Unary op : {Unary::exp, Unary::tanh, Unary::sigmoid}) {
    EXPECT_TRUE(has_code(op, f32));
    EXPECT_FALSE(has_code(op, f64));
  }
}

}  // namespace
}  // namespace reel
