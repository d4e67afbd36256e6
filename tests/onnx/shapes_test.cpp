// Shapes that a model computes: in traces with sizes that only a run knows, and in loops.
#include "reel/tests/modes.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

using OnnxShapesTest = InEveryMode;
REEL_IN_EVERY_MODE(OnnxShapesTest);

/// Returns numbers with named dims. A trace does not know their sizes.
Tensor numbers(std::int64_t rows, std::int64_t columns) {
  const Dim batch("batch", scalar(rows)), time("time", scalar(columns));
  return cast(reshape(range(rows * columns), Dims{batch, time}), f32);
}

TEST_P(OnnxShapesTest, OneTraceServesAllSizesOfNamedDims) {
  const OnnxModel model = model_of(R"(
    g (float[n, m] x) => (float[n, m] y) <float two = {2}> { a = Mul(x, two)  y = Add(a, x) })");
  const auto f = run([&](const Tensor& x) { return model({{"x", x}}).at("y"); });
  expect_values(f(numbers(1, 3)), {0, 3, 6});
  expect_values(f(numbers(2, 2)), {0, 3, 6, 9});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, ShapeGatherConcatAndReshapeKeepUnknownSizes) {
  const OnnxModel model = model_of(R"(
    g (float[n, 4] x) => (float[n, 2, 2] y)
    <int64 zero = {0}, int64[1] first = {0}, int64[2] rest = {2, 2}> {
      shape = Shape(x)
      n = Gather(shape, zero)
      n1 = Unsqueeze(n, first)
      new_shape = Concat <axis = 0> (n1, rest)
      y = Reshape(x, new_shape)
    })");
  const auto f = run([&](const Tensor& x) { return sum(model({{"x", x}}).at("y"), {1, 2}); });
  const auto rows = [](std::int64_t n) {
    return cast(reshape(range(n * 4), Dims{Dim("batch", scalar(n)), Dim("feature", 4)}), f32);
  };
  expect_values(f(rows(1)), {6});
  expect_values(f(rows(2)), {6, 22});
  EXPECT_EQ(f.trace_count(), 1);
}

/// One axis is padded and the next one cut.
TEST_P(OnnxShapesTest, PadsByANumberThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[1, 3] x, float v) => (float[2, 2] y) <int64[4] pads = {1, -1, 0, 0}> { y = Pad(x, pads, v) })");
  const auto f = run([&](const Tensor& x, const Tensor& v) {
    return model({{"x", x}, {"v", v}}).at("y");
  });
  expect_values(f(tensor({{1., 2., 3.}}), scalar(5.f)), {5, 5, 2, 3});
}

TEST_P(OnnxShapesTest, ReshapeToAProductOfSizes) {
  const OnnxModel model = model_of(R"(
    g (float[n, m, 2] x) => (float[k, 2] y) <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] two = {2}> {
      shape = Shape(x)
      n = Gather(shape, zero)
      m = Gather(shape, one)
      nm = Mul(n, m)
      rows = Unsqueeze(nm, first)
      new_shape = Concat <axis = 0> (rows, two)
      y = Reshape(x, new_shape)
    })");
  const auto f = run([&](const Tensor& x) { return sum(model({{"x", x}}).at("y"), 1); });
  const auto cube = [](std::int64_t n, std::int64_t m) {
    const Dim batch("batch", scalar(n)), time("time", scalar(m)), feature("feature", 2);
    return cast(reshape(range(n * m * 2), Dims{batch, time, feature}), f32);
  };
  expect_values(f(cube(1, 2)), {1, 5});
  expect_values(f(cube(2, 2)), {1, 5, 9, 13});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, ReshapeToAnUnknownSizeAndOneOfZero) {
  const OnnxModel model = model_of(R"(
    g (float[n, 0] x) => (float[n, 1, 0] y) <int64[1] one = {1}, int64[1] zero = {0}> {
      rows = Shape <end = 1> (x)
      sizes = Concat <axis = 0> (rows, one, zero)
      y = Reshape <allowzero = 1> (x, sizes)
    })");
  const auto f = run([&](const Tensor& x) { return sum(model({{"x", x}}).at("y"), {2}); });
  for (const std::int64_t n : {3, 0}) {
    const Tensor y = f(zeros({Dim("batch", scalar(n)), Dim("none", 0)}));
    EXPECT_EQ(y.type().sizes(), (std::vector<std::int64_t>{n, 1}));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, GatherElementsAlongAnAxisOfUnknownSize) {
  const OnnxModel model = model_of(R"(
    g (float[n, m] x, int64[n, m] at) => (float[n, m] y) { y = GatherElements <axis = 0> (x, at) })");
  const auto f = run([&](const Tensor& x, const Tensor& at) {
    return model({{"x", x}, {"at", at}}).at("y");
  });
  const auto positions = [](const Tensor& at, const Tensor& x) {
    return reshape(cast(at, i64), x.dims());
  };
  const Tensor x = numbers(2, 3), y = numbers(3, 1);
  expect_values(f(x, positions(tensor({1, 0, -1, 0, -2, 1}), x)), {3, 1, 5, 0, 1, 5});
  expect_values(f(y, positions(tensor({2, 2, -3}), y)), {2, 2, 0});
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_THROW(f(y, positions(tensor({0, 1, 3}), y)), AssertionError);
}

TEST_P(OnnxShapesTest, GatherElementsTakesIndicesOfAnotherUnknownSize) {
  const OnnxModel model = model_of(R"(
    g (float[n, m] x, int64[k, l] at) => (float[k, l] y) { y = GatherElements <axis = 1> (x, at) })");
  const auto f = run([&](const Tensor& x, const Tensor& at) {
    return model({{"x", x}, {"at", at}}).at("y");
  });
  const auto row_of = [](std::int64_t rows) {
    const Dim k("k", scalar(rows)), l("l", scalar(2));
    return ones({k, l}, i64);
  };
  expect_values(f(numbers(2, 3), row_of(1)), {1, 1});
  expect_values(f(numbers(2, 3), row_of(2)), {1, 1, 4, 4});
  EXPECT_THROW(f(numbers(2, 3), row_of(3)), Error);
}

TEST_P(OnnxShapesTest, ScatterElementsAlongAnAxisOfUnknownSize) {
  const OnnxModel model = model_of(R"(
    g (float[n, 3] x, int64[n, 3] at) => (float[n, 3] y) {
      zero = Sub(x, x)
      y = ScatterElements <axis = 0, reduction = "add"> (zero, at, x)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& at) {
    return model({{"x", x}, {"at", at}}).at("y");
  });
  const auto rows = [](std::int64_t n) {
    return cast(reshape(range(n * 3), Dims{Dim("batch", scalar(n)), Dim("feature", 3)}), f32);
  };
  const Tensor x = rows(2), y = rows(3);
  expect_values(f(x, zeros_like(cast(x, i64))), {3, 5, 7, 0, 0, 0});
  expect_values(f(y, ones_like(cast(y, i64))), {0, 0, 0, 9, 12, 15, 0, 0, 0});
  EXPECT_EQ(f.trace_count(), 1);
}

/// Returns i64[1].
Tensor one_number(std::int64_t number) { return tensor(std::vector{number}); }

TEST_P(OnnxShapesTest, TopKByANumberThatOnlyARunKnows) {
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

TEST_P(OnnxShapesTest, RangeBetweenBoundsThatOnlyARunKnows) {
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

TEST_P(OnnxShapesTest, PadsByNumbersThatOnlyARunKnows) {
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

TEST_P(OnnxShapesTest, SlicesWithBoundsThatOnlyARunKnows) {
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

TEST_P(OnnxShapesTest, SlicesSeveralAxesWithBoundsThatOnlyARunKnows) {
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

TEST_P(OnnxShapesTest, ExpandsAndReshapesToANumberThatOnlyARunKnows) {
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
TEST_P(OnnxShapesTest, NumbersComputedFromSizesAreSizes) {
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

TEST_P(OnnxShapesTest, AVectorComputedFromSizesHasTheSizesOfNewAxes) {
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
    const auto [made, same] = f(numbers(rows, 3));
    expect_all_close(made, zeros({2 * rows, 6}), 0);
    expect_all_close(same, zeros({2 * rows, 6}), 0);
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, ASizeOfMoreThan31BitsIsAnError) {
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

TEST_P(OnnxShapesTest, SqueezesAnAxisWhoseSizeOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[n, 2] x) => (float[2] y) <int64[1] axes = {0}> { y = Squeeze(x, axes) })");
  const auto f = run([&](const Tensor& x) { return model({{"x", x}}).at("y"); });
  const auto rows = [](std::int64_t n) {
    return ones({Dim("batch", scalar(n)), Dim("feature", 2)});
  };
  expect_values(f(rows(1)), {1, 1});
  EXPECT_THROW(f(rows(2)), Error);
}

TEST_P(OnnxShapesTest, GradientsWithUnknownSizes) {
  const OnnxModel model = model_of(R"(
    g (float[n, 2] x) => (float[n, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float[2] b = {1, 1}> {
      product = MatMul(x, w)
      y = Add(product, b)
    })");
  const auto f = run([](const OnnxModel& m, const Tensor& x) {
    return grad([&](const OnnxModel& m) { return sum(m({{"x", x}}).at("y")); })(m);
  });
  const auto rows = [](std::int64_t n) {
    return cast(reshape(range(n * 2), Dims{Dim("batch", scalar(n)), Dim("feature", 2)}), f32);
  };
  expect_values(f(model, rows(1)).parameters.at("w"), {0, 0, 1, 1});
  const OnnxModel two = f(model, rows(2));
  expect_values(two.parameters.at("w"), {2, 2, 4, 4});
  expect_values(two.parameters.at("b"), {2, 2});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, ASliceThatMovesWithTheIterationHasAKnownLength) {
  const OnnxModel model = model_of(R"(
    g (float[4] x) => (float[3] y)
    <int64 trips = {3}, int64 two = {2}, int64[1] first = {0}> {
      y = Loop <body = b (int64 i, bool go) => (bool next_go, float row) {
        next_go = Identity(go)
        end = Add(i, two)
        starts = Unsqueeze(i, first)
        ends = Unsqueeze(end, first)
        pair = Slice(x, starts, ends)
        row = ReduceSum <keepdims = 0> (pair)
      }> (trips, )
    })");
  const auto f = run([&](const Tensor& x) { return model({{"x", x}}).at("y"); });
  expect_values(f(tensor({1., 2., 4., 8.})), {3, 6, 12});
}

TEST_P(OnnxShapesTest, AStateMayGrow) {
  const OnnxModel model = model_of(R"(
    g (float[k] x) => (float[m] y) <int64 trips = {3}> {
      y = Loop <body = b (int64 i, bool go, float[a] state) => (bool next_go, float[b] next) {
        next_go = Identity(go)
        next = Concat <axis = 0> (state, x)
      }> (trips, , x)
    })");
  const auto f = run([&](const Tensor& x) { return model({{"x", x}}).at("y"); });
  expect_values(f(tensor({1., 2.})), {1, 2, 1, 2, 1, 2, 1, 2});
}

TEST_P(OnnxShapesTest, SelectedElementsMayHaveASizeThatOnlyARunKnows) {
  const OnnxModel model = model_of(R"(
    g (float[4] x) => (float[m] y) <float zero = {0}> {
      positive = Greater(x, zero)
      chosen = Compress <axis = 0> (x, positive)
      y = Add(chosen, chosen)
    })");
  const auto f = run([&](const Tensor& x) { return model({{"x", x}}).at("y"); });
  expect_values(f(tensor({1., -2., 3., 0.})), {2, 6});
  expect_values(f(tensor({-1., -2., -3., 4.})), {8});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, UniqueElementsOfAnyNumber) {
  const OnnxModel model = model_of(R"(
    g (int64[4] x) => (int64[n] y, int64[n] first, int64[4] place, int64[n] count, int64[n] z) {
      y, first, place, count = Unique(x)
      z = Unique <sorted = 0> (x)
    })");
  const auto f = run([&](const Tensor& x) { return model({{"x", x}}); });
  const std::int64_t large = std::int64_t{1} << 53;  // f64 does not tell it from the next one
  const auto some = f(tensor(std::vector{large + 1, large, large + 1, std::int64_t{-1}}));
  expect_values(some.at("y") - large, {-1. - static_cast<double>(large), 0, 1});
  expect_values(some.at("first"), {3, 1, 0});
  expect_values(some.at("place"), {2, 1, 2, 0});
  expect_values(some.at("count"), {1, 1, 2});
  expect_values(some.at("z") - large, {1, 0, -1. - static_cast<double>(large)});
  const auto one = f(tensor({7, 7, 7, 7}, i64));
  expect_values(one.at("y"), {7});
  expect_values(one.at("count"), {4});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, BranchesMayHaveResultsOfDifferentSizes) {
  const OnnxModel model = model_of(R"(
    g (float[3] x, bool p) => (float[m] y) <int64[1] from = {1}, int64[1] to = {3}> {
      z = If <then_branch = t () => (float[k] a) { a = Slice(x, from, to) },
              else_branch = e () => (float[l] b) { b = Neg(x) }> (p)
      y = Add(z, z)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& p) {
    return model({{"x", x}, {"p", p}}).at("y");
  });
  expect_values(f(tensor({1., 2., 3.}), scalar(true)), {4, 6});
  expect_values(f(tensor({1., 2., 3.}), scalar(false)), {-2, -4, -6});
  EXPECT_EQ(f.trace_count(), 1);
}

constexpr const char* kSequenceInALoop = R"(
  g (float[2] x, int64 trips) => (float[m, 2] y, float[2] last) <bool yes = {1}, double[1] w = {1}> {
    none = SequenceEmpty()
    all, last = Loop <body = b (int64 i, bool go, seq(float[2]) rows, float[2] state)
                          => (bool next_go, seq(float[2]) more, float[2] next) {
      next_go = Identity(go)
      next = Add(state, x)
      more = SequenceInsert(rows, next)
    }> (trips, yes, none, x)
    y = ConcatFromSequence <axis = 0, new_axis = 1> (all)
  })";

TEST_P(OnnxShapesTest, ASequenceMayGrowInALoop) {
  const OnnxModel model = model_of(kSequenceInALoop);
  const auto f = run([&](const Tensor& x, const Tensor& trips) {
    return model({{"x", x}, {"trips", trips}}).at("y");
  });
  expect_values(f(tensor({1., 2.}), scalar(2, i64)), {2, 4, 3, 6});
  expect_values(f(tensor({1., 2.}), scalar(1, i64)), {2, 4});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxShapesTest, ASequenceInALoopHasAGradient) {
  const OnnxModel model = model_of(kSequenceInALoop);
  const auto f = run([&](const Tensor& x, const Tensor& trips) {
    return grad([&](const Tensor& x) {
      return sum(square(model({{"x", x}, {"trips", trips}}).at("y")));
    })(x);
  });
  expect_values(f(tensor({1., 2.}), scalar(2, i64)), {26, 52});
}

TEST(OnnxShapesTest, EinsumOfEmptyAxes) {
  const OnnxModel model = model_of(R"(
    g (float[2, 0] a, float[0, 3] b) => (float[2, 3] y, float[0, 2, 3] z) {
      y = Einsum <equation = "ij,jk->ik"> (a, b)
      z = Einsum <equation = "ij,jk->jik"> (a, b)
    })");
  const auto outputs = model({{"a", zeros({2, 0})}, {"b", zeros({0, 3})}});
  expect_values(outputs.at("y"), {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(outputs.at("z").type(), TensorType(f32, {0, 2, 3}));
}

TEST(OnnxShapesTest, ALoopWithScanOutputsMayHaveAStateThatGrows) {
  const OnnxModel model = model_of(R"(
    g (int64 trips, float[n] x) => (float[m] last, float[t] sums) {
      last, sums = Loop <body = b (int64 i, bool go, float[k] state) => (bool next_go, float[l] next, float sum) {
        next_go = Identity(go)
        next = Concat <axis = 0> (state, state)
        sum = ReduceSum <keepdims = 0> (state)
      }> (trips, , x)
    })");
  const auto outputs = model({{"trips", scalar(2, i64)}, {"x", tensor({1., 2.})}});
  expect_values(outputs.at("last"), {1, 2, 1, 2, 1, 2, 1, 2});
  expect_values(outputs.at("sums"), {3, 6});
}

TEST(OnnxShapesErrorTest, AnArgumentOfATraceGivesNoSize) {
  const OnnxModel model = model_of(R"(
    g (float[4] x, int64[2] shape) => (float[a, b] y) { y = Reshape(x, shape) })");
  const Tensor x = tensor({1., 2., 3., 4.}), shape = tensor({2, 2}, i64);
  EXPECT_EQ(message_of<TraceError>([&] {
              jit([&](const Tensor& x, const Tensor& shape) {
                return model({{"x", x}, {"shape", shape}}).at("y");
              })(x, shape);
            }).substr(0, 91),
            "Reshape: input 1 (shape) gives sizes or positions, but its elements are known only "
            "when the");
  expect_values(jit([&](const Tensor& x) {
                  return model({{"x", x}, {"shape", shape}}).at("y");
                })(x),
                {1, 2, 3, 4});
}

TEST(OnnxShapesErrorTest, ANumberOfARunIsComparedIfOthersAreZero) {
  const OnnxModel model = model_of(R"(
    g (float[n, 0] x, int64[1] k) => (float[m, 0] y) <int64[1] zero = {0}> {
      sizes = Concat <axis = 0> (k, zero)
      y = Reshape <allowzero = 1> (x, sizes)
    })");
  const auto f = [&](const Tensor& x, const Tensor& k) {
    return model({{"x", x}, {"k", k}}).at("y");
  };
  const Tensor x = zeros({Dim("batch", scalar(3)), Dim("none", 0)}), k = tensor({2}, i64);
  EXPECT_EQ(f(x, k).type(), TensorType(f32, {2, 0}));
  EXPECT_EQ(jit(f)(x, tensor({3}, i64)).type(), TensorType(f32, {3, 0}));
  EXPECT_THROW(jit(f)(x, k), AssertionError);
}

TEST(OnnxShapesErrorTest, ARaggedInputIsRefused) {
  const OnnxModel model = model_of("g (float[n, m] x) => (float[n, m] y) { y = Abs(x) }");
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              model({{"x", zeros({batch, time})}});
            }),
            "OnnxModel: input x is f32[batch=2,time[batch=2]], but ONNX knows no ragged dims: give "
            "it a dim "
            "of one size, and the lengths as the input that the model has for them");
}

}  // namespace
}  // namespace reel
