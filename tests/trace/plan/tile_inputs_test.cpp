// The inputs that a tile program's outputs overwrite, and the number of inputs that are queried for
// that.
#include <gtest/gtest.h>

#include <memory>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {
namespace {

/// Returns a graph that outputs the squares of its `count` inputs.
Ref<Graph> squares(int count) {
  GraphBuilder builder("squares");
  const ModeScope scope(builder.scope());
  Tensors outputs;
  for (int i = 0; i < count; ++i) {
    const Tensor x = builder.add_input(TensorType(f64, {2}));
    outputs.push_back(x * x);
  }
  return builder.finish(outputs);
}

TEST(TileInputsTest, EachOutputTakesItsOwnInputOrTheFirstThatIsReadByThen) {
  const Ref<Graph> graph = squares(5);
  const std::vector<TensorType> types(5, TensorType(f64, {2}));
  TileProgram program(*graph, types, DimEnv());
  const auto all = [](std::size_t) { return true; };
  EXPECT_EQ(program.choose_inputs(all, [](std::size_t, std::size_t) { return true; }),
            (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(program.choose_inputs([](std::size_t k) { return k == 3; },
                                  [](std::size_t, std::size_t) { return true; }),
            (std::vector<int>{-1, -1, -1, 3, -1}));
  EXPECT_EQ(program.choose_inputs([](std::size_t k) { return k == 3; },
                                  [](std::size_t i, std::size_t) { return i != 3; }),
            (std::vector<int>{-1, -1, -1, 0, -1}));
}

TEST(TileInputsTest, EachInputIsAskedOnce) {
  constexpr int kCount = 400;
  const Ref<Graph> graph = squares(kCount);
  const std::vector<TensorType> types(kCount, TensorType(f64, {2}));
  TileProgram program(*graph, types, DimEnv());
  for (const bool gives : {true, false}) {
    int asked = 0;
    program.choose_inputs([](std::size_t) { return true; },
                          [&](std::size_t, std::size_t) {
                            ++asked;
                            return gives;
                          });
    EXPECT_EQ(asked, kCount);
  }
}

TEST(TileInputsTest, AnUpdateTakesItsOwnInput) {
  GraphBuilder builder("updates");
  const ModeScope scope(builder.scope());
  const TensorType type(f64, {2});
  const Tensor w = builder.add_input(type), m = builder.add_input(type),
               g = builder.add_input(type);
  const Tensor loss = square(w), moment = m * g + g;
  const Ref<Graph> graph = builder.finish({loss, moment, w - moment});
  TileProgram program(*graph, std::vector<TensorType>(3, type), DimEnv());
  EXPECT_EQ(program.choose_inputs([](std::size_t k) { return k > 0; },
                                  [](std::size_t i, std::size_t) { return i < 2; }),
            (std::vector<int>{-1, 1, 0}));
}

/// Returns a program that makes x + y and x - y, in either order.
std::unique_ptr<TileProgram> sum_and_difference(const TensorType& type, bool sum_first = true) {
  GraphBuilder builder("sum and difference");
  const ModeScope scope(builder.scope());
  const Tensor x = builder.add_input(type), y = builder.add_input(type);
  const Tensor sum = x + y, difference = x - y;
  const Ref<Graph> graph =
      builder.finish(sum_first ? Tensors{sum, difference} : Tensors{difference, sum});
  return std::make_unique<TileProgram>(*graph, std::vector<TensorType>(2, type), DimEnv());
}

/// Programs that update all by inputs of their own are asked faster, with the same answer.
TEST(TileInputsTest, AllMayBeUpdatesOnlyIfEachHasAnInputOfItsOwn) {
  const TensorType type(f32, {64});
  GraphBuilder builder("step");
  const ModeScope scope(builder.scope());
  const Tensor w = builder.add_input(type), m = builder.add_input(type),
               g = builder.add_input(type);
  const Tensor moment = m * g + g;
  const Ref<Graph> graph = builder.finish({moment, w - moment});
  TileProgram program(*graph, std::vector<TensorType>(3, type), DimEnv());
  const auto all = [](std::size_t, std::size_t) { return true; };
  EXPECT_TRUE(program.may_update(all));
  EXPECT_EQ(program.choose_inputs([](std::size_t) { return true; }, all), (std::vector<int>{1, 0}));
  EXPECT_FALSE(program.may_update([](std::size_t i, std::size_t) { return i != 0; }));
  // Both would update the first input.
  EXPECT_FALSE(sum_and_difference(type)->may_update(all));
}

TEST(TileProgramTest, OnlyEqualProgramsAreTheSame) {
  const TensorType type(f32, {64});
  const auto program = sum_and_difference(type);
  EXPECT_TRUE(program->is_same(*sum_and_difference(type)));
  EXPECT_FALSE(program->is_same(*sum_and_difference(type, false)));
  EXPECT_FALSE(program->is_same(*sum_and_difference(TensorType(f64, {64}))));
  EXPECT_FALSE(program->is_same(*sum_and_difference(TensorType(f32, {65}))));
}

}  // namespace
}  // namespace reel
