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
