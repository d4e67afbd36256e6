// Transposes behind element-wise ops: graphs before and after the pass, and equal bits.
#include "reel/trace/passes/cleanup/sink_transposes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "reel/core/graph/graph_builder.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/cleanup/drop_dead.h"

namespace reel {
namespace {

using Function = std::function<Tensors(const Tensors&)>;

Ref<Graph> graph_of(const Tensors& inputs, const Function& f) {
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  return record_graph("f", types, f).graph;
}
/// Returns the ops behind the pass, without those that nothing reads.
std::string sunk(const Tensors& inputs, const Function& f) {
  const Ref<Graph> graph = graph_of(inputs, f), moved = sink_transposes(*graph);
  return ops(*drop_dead(moved ? *moved : *graph));
}
/// Expects the bits of eager mode from every executor.
void expect_bits_of_eager(const Tensors& inputs, const Function& f) {
  const Tensors expected = f(inputs);
  for (const Executor executor : {Executor::interpreter, Executor::plan, Executor::dataflow}) {
    const Tensors made = jit(f, {.executor = executor})(inputs);
    ASSERT_EQ(made.size(), expected.size());
    for (std::size_t i = 0; i < made.size(); ++i) expect_same_bits(made[i], expected[i]);
  }
}

Tensor channels_second(const Tensor& x) { return transpose(x, {0, 3, 1, 2}); }
Tensor channels_last(const Tensor& x) { return transpose(x, {0, 2, 3, 1}); }

class SinkTransposesTest : public ::testing::Test {
 protected:
  SinkTransposesTest() { manual_seed(3); }
  const Tensor x = random_normal({2, 4, 5, 3}), bias = random_normal({3, 1, 1}),
               scale = random_normal({2, 3, 1, 1}), map = random_normal({4, 5}),
               same = random_normal({2, 3, 4, 5});
};

TEST_F(SinkTransposesTest, TransposesThatUndoEachOtherVanish) {
  const Function f = [](const Tensors& in) {
    return Tensors{channels_last(relu(channels_second(in[0])))};
  };
  EXPECT_EQ(sunk({x}, f), "relu");
  expect_bits_of_eager({x}, f);
}

// The type rule tells whether attributes name axes or sizes.
TEST_F(SinkTransposesTest, AttributesMayNotNameOtherAxes) {
  const auto with = [](const std::function<Tensor(const Tensor&)>& op) {
    return Function(
        [op](const Tensors& in) { return Tensors{channels_last(op(channels_second(in[0])))}; });
  };
  EXPECT_EQ(sunk({x}, with([](const Tensor& y) { return cast(y, f64); })), "cast");
  const Function named = with([](const Tensor& y) { return checkpoint_name(y, "y"); });
  EXPECT_EQ(sunk({x}, named), "checkpoint_name");
  expect_bits_of_eager({x}, named);
  const Function ensured = with([](const Tensor& y) {
    return ensure_shape(y, {unknown, 3, 4, 5});
  });
  EXPECT_EQ(sunk({x}, ensured), "transpose ensure_shape transpose");
  expect_bits_of_eager({x}, ensured);
}

TEST_F(SinkTransposesTest, TransposesOfTransposesAreOne) {
  const Function f = [](const Tensors& in) {
    return Tensors{transpose(transpose(in[0], {1, 0, 3, 2}), {2, 0, 3, 1})};
  };
  EXPECT_EQ(sunk({x}, f), "transpose");
  expect_bits_of_eager({x}, f);
}

TEST_F(SinkTransposesTest, SmallerOperandsAreRearranged) {
  const auto with = [](const std::function<Tensor(const Tensor&, const Tensor&)>& op) {
    return Function([op](const Tensors& in) {
      return Tensors{channels_last(op(channels_second(in[0]), in[1]))};
    });
  };
  const Function add = with([](const Tensor&a, const Tensor&b) { return a + b; }),
                 subtract = with([](const Tensor&a, const Tensor&b) { return b - a; });
  EXPECT_EQ(sunk({x, bias}, add), "reshape add");
  EXPECT_EQ(sunk({x, scale}, add), "reshape add");
  EXPECT_EQ(sunk({x, map}, add), "reshape add");
  EXPECT_EQ(sunk({x, ones({1, 1, 1})}, add), "add");
  EXPECT_EQ(sunk({x, scalar(2.F)}, add), "add");
  EXPECT_EQ(sunk({x, random_normal({3, 1, 5})}, add), "reshape transpose add");
  for (const Tensor& operand : {bias, scale, map, ones({1, 1, 1}), ones({1}), scalar(2.F),
                                random_normal({3, 1, 5}), random_normal({2, 1, 4, 1})})
    for (const Function& f : {add, subtract}) expect_bits_of_eager({x, operand}, f);
}

TEST_F(SinkTransposesTest, CheckedSizesStayInTheirOrder) {
  const Function f = [](const Tensors& in) {
    return Tensors{channels_last(ensure_shape(channels_second(in[0]), {2, 3, 4, 5}) * 2)};
  };
  EXPECT_EQ(sunk({x}, f), "transpose ensure_shape full mul transpose");
  expect_bits_of_eager({x}, f);
}

TEST_F(SinkTransposesTest, CastsMoveOnlyToFewerBytes) {
  const Function to_float = [](const Tensors& in) {
    return Tensors{cast(channels_second(in[0] > 0.F), f32)};
  };
  EXPECT_EQ(sunk({x}, to_float).find("transpose"), sunk({x}, to_float).find("cast") - 10);
  expect_bits_of_eager({x}, to_float);
  const Function both = [](const Tensors& in) {
    return Tensors{channels_last(cast(channels_second(in[0]), i32))};
  };
  EXPECT_EQ(sunk({x}, both), "cast");
  expect_bits_of_eager({x}, both);
}

TEST_F(SinkTransposesTest, LargeOperandsInAnotherOrderKeepTheTranspose) {
  const Function f = [](const Tensors& in) {
    return Tensors{channels_last(channels_second(in[0]) + in[1])};
  };
  EXPECT_EQ(sunk({x, same}, f), "transpose add transpose");
  EXPECT_EQ(sunk({x, random_normal({3, 4, 5})}, f), "transpose add transpose");
  expect_bits_of_eager({x, same}, f);
}

TEST_F(SinkTransposesTest, TwoTransposedOperandsMeetInTheSameOrder) {
  const Function f = [](const Tensors& in) {
    const Tensor a = channels_second(in[0]), b = channels_second(sin(in[0]));
    return Tensors{channels_last(where(a < b, a, clip(b, 0, 1)) * b)};
  };
  EXPECT_EQ(sunk({x}, f).find("transpose"), std::string::npos);
  expect_bits_of_eager({x}, f);
}

TEST_F(SinkTransposesTest, OtherReadersGetTheTransposeOfTheResult) {
  const Function f = [](const Tensors& in) {
    const Tensor y = exp(channels_second(in[0]));
    return Tensors{sum(y, 2), y, channels_last(y)};
  };
  EXPECT_EQ(sunk({x}, f), "exp transpose sum");
  expect_bits_of_eager({x}, f);
}

TEST_F(SinkTransposesTest, WindowsFindTheirLargestElementsChannelsLast) {
  const Function f = [](const Tensors& in) {
    return Tensors{
        channels_last(max_pool(channels_second(in[0]), {2, 3},
                               {.size = {3, 2},
                                .stride = {2, 1},
                                .padding = {WindowPadding{1, 1}, WindowPadding{0, 1}}}))};
  };
  EXPECT_EQ(sunk({x}, f), "window_max");
  expect_bits_of_eager({x}, f);
  // Windows over axes that the transpose tears apart.
  const Function apart = [](const Tensors& in) {
    return Tensors{max_pool(transpose(in[0], {0, 3, 2, 1}), {2, 3}, {.size = 2})};
  };
  EXPECT_EQ(sunk({x}, apart), "transpose window_max");
  expect_bits_of_eager({x}, apart);
}

TEST_F(SinkTransposesTest, GradientsOfPoolsHaveTheBitsOfEagerMode) {
  const auto loss = [](const Tensor& x) {
    return sum(square(max_pool(relu(channels_second(x)), {2, 3}, {.size = 2})));
  };
  expect_bits_of_eager({x}, [&](const Tensors& in) { return Tensors{grad(loss)(in[0])}; });
}

TEST_F(SinkTransposesTest, NamedDimsAndSumsStay) {
  const Dim row("row", 2), unit("unit", 3);
  const Function named = [&](const Tensors& in) {
    return Tensors{transpose(relu(transpose(in[0], {unit, row})), {row, unit})};
  };
  EXPECT_EQ(sunk({ones({row, unit})}, named), "transpose relu transpose");
  const Function sums = [](const Tensors& in) { return Tensors{sum(channels_second(in[0]), 2)}; };
  EXPECT_EQ(sunk({x}, sums), "transpose sum");
  expect_bits_of_eager({x}, sums);
}

TEST_F(SinkTransposesTest, AnyOrderTypeAndSizeHasTheBitsOfEagerMode) {
  const std::vector<std::vector<std::int64_t>> shapes{{2, 3, 4}, {1, 3, 1}, {0, 3, 2}, {5, 1, 7}};
  for (const auto& sizes : shapes)
    for (const DType dtype : {f32, f64})
      for (const Axes& order : {Axes{0, 2, 1}, Axes{2, 0, 1}, Axes{1, 2, 0}, Axes{2, 1, 0}}) {
        const Tensor t = cast(random_normal(Dims(sizes.begin(), sizes.end())), dtype);
        expect_bits_of_eager({t}, [&](const Tensors& in) {
          const Tensor y = transpose(in[0], order),
                       rows = reshape(range(Dim(y.dim(0).size()), dtype), {y.dim(0).size(), 1, 1});
          return Tensors{transpose(tanh(y * rows) + 1, order), y, y - mean(y, 2, Keep::yes)};
        });
      }
}

}  // namespace
}  // namespace reel
