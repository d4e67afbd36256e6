// Numbers that only a run knows, as sizes, bounds and counts of a model in a trace.
#include "reel/tests/modes.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

using OnnxRunTimeSizesTest = InEveryMode;
REEL_IN_EVERY_MODE(OnnxRunTimeSizesTest);

/// Returns i64[1].
Tensor one_number(std::int64_t number) { return tensor(std::vector{number}); }

TEST_P(OnnxRunTimeSizesTest, TopKByANumberThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[2, 3] x, int64[1] k) => (float[2, n] y, int64[2, n] at, float[2, n] z) {
      y, at = TopK(x, k)
      z, unread = TopK <largest = 0> (x, k)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& k) {
    const auto made = model({{"x", x}, {"k", k}});
    return std::tuple{made.at("y"), made.at("at"), made.at("z")};
  });
  const Tensor x = tensor({{1., 3., 2.}, {5., 4., 5.}});
  const auto [y, at, z] = f(x, one_number(2));
  expect_values(y, {3, 2, 5, 5});
  expect_values(at, {1, 2, 0, 2});
  expect_values(z, {1, 2, 4, 5});
  EXPECT_EQ(std::get<0>(f(x, one_number(0))).numel(), 0);
  EXPECT_THROW(f(x, one_number(4)), Error);
}

TEST_P(OnnxRunTimeSizesTest, RangeBetweenBoundsThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (int64 a, int64 b, int64 step, float c) => (int64[n] y, float[m] z) <float one = {1}> {
      y = Range(a, b, step)
      z = Range(one, c, one)
    })");
  const auto f = run([&](const Tensor& a, const Tensor& b, const Tensor& step, const Tensor& c) {
    const auto made = model({{"a", a}, {"b", b}, {"step", step}, {"c", c}});
    return std::pair{made.at("y"), made.at("z")};
  });
  const auto at = [](std::int64_t i) { return scalar(i, i64); };
  const auto [up, floats] = f(at(2), at(7), at(2), scalar(3.5f));
  expect_values(up, {2, 4, 6});
  expect_values(floats, {1, 2, 3});
  const auto [down, none] = f(at(3), at(0), at(-1), scalar(1.f));
  expect_values(down, {3, 2, 1});
  EXPECT_EQ(none.numel(), 0);
}

TEST_P(OnnxRunTimeSizesTest, PadsByNumbersThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[2] x, int64[1] n, float v) => (float[m] y, float[k] z) <int64[1] one = {1}> {
      pads = Concat <axis = 0> (one, n)
      y = Pad(x, pads, v)
      both = Concat <axis = 0> (n, n)
      twice = Add(both, both)
      z = Pad(x, twice)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& n, const Tensor& v) {
    const auto made = model({{"x", x}, {"n", n}, {"v", v}});
    return std::pair{made.at("y"), made.at("z")};
  });
  const Tensor x = tensor({1., 2.});
  const auto [y, z] = f(x, one_number(2), scalar(9.f));
  expect_values(y, {9, 1, 2, 9, 9});
  expect_values(z, {0, 0, 0, 0, 1, 2, 0, 0, 0, 0});
  const auto [a, b] = f(x, one_number(0), scalar(9.f));
  expect_values(a, {9, 1, 2});
  expect_values(b, {1, 2});
}

TEST_P(OnnxRunTimeSizesTest, SlicesWithBoundsThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[4] x, int64[1] n) => (float[k] y, float[m] z) <int64[1] first = {0}, int64[1] end = {9}> {
      y = Slice(x, first, n)
      z = Slice(x, n, end)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& n) {
    const auto made = model({{"x", x}, {"n", n}});
    return std::pair{made.at("y"), made.at("z")};
  });
  const Tensor x = tensor({1., 2., 3., 4.});
  const auto expect = [&](std::int64_t n, const std::vector<double>& y,
                          const std::vector<double>& z) {
    const auto [front, back] = f(x, one_number(n));
    EXPECT_EQ(cast(front, f64).to_vector<double>(), y);
    EXPECT_EQ(cast(back, f64).to_vector<double>(), z);
  };
  expect(3, {1, 2, 3}, {4});
  expect(-1, {1, 2, 3}, {4});
  expect(0, {}, {1, 2, 3, 4});
  expect(7, {1, 2, 3, 4}, {});
}

TEST_P(OnnxRunTimeSizesTest, SlicesSeveralAxesWithBoundsThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[2, 3] x, int64[2] begin) => (float[n, m] y)
    <int64[2] end = {9, 9}> {
      y = Slice(x, begin, end)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& begin) {
    return model({{"x", x}, {"begin", begin}}).at("y");
  });
  const Tensor x = tensor({{1., 2., 3.}, {4., 5., 6.}});
  expect_values(f(x, tensor(std::vector<std::int64_t>{1, -2})), {5, 6});
  expect_values(f(x, tensor(std::vector<std::int64_t>{0, 1})), {2, 3, 5, 6});
}

TEST_P(OnnxRunTimeSizesTest, ExpandsAndReshapesToANumberThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[1, 2] x, int64[1] n) => (float[k, 2] y, float[k, 2] same, float[m] flat)
    <int64[1] two = {2}, int64[1] open = {-1}> {
      sizes = Concat <axis = 0> (n, two)
      y = Expand(x, sizes)
      same = Expand(y, sizes)
      rows = Reshape(y, sizes)
      flat = Reshape(rows, open)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& n) {
    const auto made = model({{"x", x}, {"n", n}});
    return std::tuple{made.at("y"), made.at("same"), made.at("flat")};
  });
  const auto [y, same, flat] = f(tensor({{1., 2.}}), one_number(2));
  expect_values(y, {1, 2, 1, 2});
  expect_values(same, {1, 2, 1, 2});
  expect_values(flat, {1, 2, 1, 2});
}

/// The number is no size of an axis before these ops make one.
TEST_P(OnnxRunTimeSizesTest, NumbersComputedFromSizesAreSizes) {
  const OnnxModel model = model_of(R"(
    g (float[n] x) => (int64[m] counted, float[m, 2] rows, float[m, 2] same, float[m] zeros)
    <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] two = {2}, float[1, 2] pair = {3, 4}> {
      shape = Shape(x)
      n = Gather(shape, zero)
      more = Add(n, one)
      counted = Range(zero, more, one)
      length = Unsqueeze(more, first)
      sizes = Concat <axis = 0> (length, two)
      rows = Expand(pair, sizes)
      same = Expand(rows, sizes)
      zeros = ConstantOfShape(length)
    })");
  const auto f = run([&](const Tensor& x) {
    const auto made = model({{"x", x}});
    return std::tuple{made.at("counted"), made.at("rows"), made.at("same"), made.at("zeros")};
  });
  for (const std::int64_t n : {1, 2}) {
    const auto [counted, rows, same, nothing] = f(zeros({Dim("time", scalar(n))}));
    const Tensor pairs = broadcast_to(tensor({{3.f, 4.f}}), {n + 1, 2});
    expect_all_close(counted, range(n + 1, i64), 0);
    expect_all_close(rows, pairs, 0);
    expect_all_close(same, pairs, 0);
    expect_all_close(nothing, zeros({n + 1}), 0);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxRunTimeSizesTest, AVectorComputedFromSizesHasTheSizesOfNewAxes) {
  const OnnxModel model = model_of(R"(
    g (float[n, m] x) => (float[k, l] zeros, float[k, l] same)
    <int64[2] twice = {2, 2}, float[1, 1] nothing = {0}> {
      shape = Shape(x)
      sizes = Mul(shape, twice)
      zeros = ConstantOfShape(sizes)
      same = Expand(nothing, sizes)
    })");
  const auto f = run([&](const Tensor& x) {
    const auto made = model({{"x", x}});
    return std::pair{made.at("zeros"), made.at("same")};
  });
  for (const std::int64_t rows : {1, 2}) {
    const auto [made, same] =
        f(zeros({Dim("batch", scalar(rows)), Dim("time", scalar(std::int64_t{3}))}));
    expect_all_close(made, zeros({2 * rows, 6}), 0);
    expect_all_close(same, zeros({2 * rows, 6}), 0);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxRunTimeSizesTest, ASizeOfMoreThan31BitsIsAnError) {
  const OnnxModel model = model_of(R"(
    g (int64 n) => (float[k] y) <int64 factor = {4294967297}, int64[1] first = {0}> {
      more = Mul(n, factor)
      size = Unsqueeze(more, first)
      y = ConstantOfShape(size)
    })");
  const auto f = run([&](const Tensor& n) { return sum(model({{"n", n}}).at("y")); });
  expect_values(f(scalar(0, i64)), {0});
  EXPECT_THROW(f(scalar(1, i64)), Error);
}

TEST_P(OnnxRunTimeSizesTest, SqueezesAnAxisWhoseSizeOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[n, 2] x) => (float[2] y) <int64[1] axes = {0}> { y = Squeeze(x, axes) })");
  const auto f = run([&](const Tensor& x) { return model({{"x", x}}).at("y"); });
  const auto rows = [](std::int64_t n) {
    return ones({Dim("batch", scalar(n)), Dim("feature", 2)});
  };
  expect_values(f(rows(1)), {1, 1});
  EXPECT_THROW(f(rows(2)), Error);
}

/// ONNX lets no state of a Scan change its sizes, so a trace knows them after the loop.
TEST_P(OnnxRunTimeSizesTest, AStateOfAScanKeepsItsSizes) {
  const OnnxModel model = model_of(R"(
    g (float[2, 2] x, float[2] start, int64[1] n) => (float[2] last) {
      last, unread = Scan <num_scan_inputs = 1,
                           body = step (float[2] state, float[2] row) => (float[2] next, float[2] y) {
        y = Add(state, row)
        next, at = TopK(y, n)
      }> (start, x)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& n) {
    return model({{"x", x}, {"start", zeros({2})}, {"n", n}}).at("last");
  });
  const Tensor x = tensor({{1., 2.}, {3., 1.}});
  expect_values(f(x, one_number(2)), {5, 2});
  EXPECT_THROW(f(x, one_number(1)), Error);
}

}  // namespace
}  // namespace reel
