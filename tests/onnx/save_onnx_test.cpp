// save_onnx: names of inputs and outputs, files, options, and its errors.
#include "reel/onnx/save_onnx.h"

#include <algorithm>

#include "reel/onnx/model.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

struct Layer {
  Tensor weight, bias;
};
struct Layers {
  std::vector<Layer> layers;
  Layer readout;
};

Layer some_layer() { return {tensor({{1., -1.}, {0.5, 2.}}), tensor({0.1, 0.2})}; }
Tensor some_input() { return tensor({{1., 2.}, {3., 4.}}); }
Tensor apply(const Layer& layer, const Tensor& x) { return matmul(x, layer.weight) + layer.bias; }

using Names = std::vector<std::string>;

TEST(SaveOnnxTest, InputsAndOutputsHaveTheNamesOfMembers) {
  const Layers model{{some_layer(), some_layer()}, some_layer()};
  const auto f = [](const Layers& m, const Tensor& x) {
    Tensor y = x;
    for (const Layer& layer : m.layers) y = apply(layer, y);
    return apply(m.readout, y);
  };
  const OnnxModel saved = load_onnx_bytes(
      onnx_bytes(f, std::tuple{model, some_input()}, {.arguments = {"model", "x"}}));
  EXPECT_EQ(saved.input_names(),
            (Names{"model.layers.0.weight", "model.layers.0.bias", "model.layers.1.weight",
                   "model.layers.1.bias", "model.readout.weight", "model.readout.bias", "x"}));
  EXPECT_EQ(saved.output_names(), Names{"y"});
}

TEST(SaveOnnxTest, WithoutNamesArgumentsAndResultsAreNumbered) {
  const auto f = [](const Tensor& a, const Tensor& b) { return std::pair{a + b, a - b}; };
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(f, std::tuple{some_input(), some_input()}));
  EXPECT_EQ(saved.input_names(), (Names{"x0", "x1"}));
  EXPECT_EQ(saved.output_names(), (Names{"y0", "y1"}));
  const auto g = [](const Tensor& a) { return a * 2; };
  EXPECT_EQ(load_onnx_bytes(onnx_bytes(g, some_input())).input_names(), Names{"x"});
}

TEST(SaveOnnxTest, AnArgumentAndAResultOfOneNameStayApart) {
  const auto f = [](const Layer& layer) { return Layer{layer.weight * 2, layer.bias}; };
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(f, some_layer()));
  EXPECT_EQ(saved.input_names(), (Names{"weight", "bias"}));
  EXPECT_EQ(saved.output_names(), (Names{"weight_1", "bias_1"}));
}

TEST(SaveOnnxTest, OutputsHaveTheirNamesWhateverNodesAndStatesAreCalled) {
  const auto f = [](const Tensor& x) {
    const Tensor w = tensor({{1., -1.}, {0.5, 2.}});
    const auto body = [&](const Tensor& x, const Tensor& s) {
      return std::pair{s * 2, tanh(matmul(x, w)) + s};
    };
    auto [ys, state, dim] = scan(Scan{.initial = zeros({2}), .xs = x, .body = body});
    return std::tuple{ys, state, sum(state)};
  };
  const OnnxModel saved =
      load_onnx_bytes(onnx_bytes(f, some_input(), {.results = {"constant", "state", "captured"}}));
  EXPECT_EQ(saved.output_names(), (Names{"constant", "state", "captured"}));
  expect_all_close(saved({{"x", some_input()}}).at("state"), std::get<1>(f(some_input())));
}

TEST(SaveOnnxTest, ParametersBecomeInitializersUnderTheirNames) {
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(apply, std::tuple{some_layer(), some_input()},
                                                     {.arguments = {"", "x"}, .parameters = {0}}));
  EXPECT_EQ(saved.input_names(), Names{"x"});
  EXPECT_EQ(tree_paths(saved), (Names{"bias", "weight"}));
  expect_values(saved.parameters.at("bias"), {0.1, 0.2}, 1e-7);
  expect_values(saved({{"x", some_input()}}).at("y"), {2.1, 3.2, 5.1, 5.2}, 1e-6);
}

TEST(SaveOnnxTest, AModelOfOneNumberOfRowsTakesOthersWithAnyLength) {
  const auto f = [](const Tensor& x) { return sum(x, {0}); };
  const OnnxModel fixed = load_onnx_bytes(onnx_bytes(f, some_input()));
  EXPECT_THROW(fixed({{"x", zeros({3, 2})}}), ShapeError);
  const OnnxModel any = load_onnx_bytes(onnx_bytes(f, some_input(), {.any_length = {0}}));
  expect_values(any({{"x", ones({5, 2})}}).at("y"), {5, 5});
}

TEST(SaveOnnxTest, AModelOfAStaticDimTakesOtherSizesIfItIsNamed) {
  const auto f = [](const Tensor& x) { return cumsum(x, x.dim("time")); };
  const Tensor x = ones({Dim("time", 2)});
  const OnnxModel fixed = load_onnx_bytes(onnx_bytes(f, x));
  EXPECT_THROW(fixed({{"x", ones({4})}}), ShapeError);
  const OnnxModel any = load_onnx_bytes(onnx_bytes(f, x, {.dynamic = {Dim("time")}}));
  expect_values(any({{"x", ones({4})}}).at("y"), {1, 2, 3, 4});
}

TEST(SaveOnnxTest, AModelOfADynamicDimTakesAnySize) {
  const Dim time("time", scalar(2));
  const auto f = [](const Tensor& x) { return cumsum(x, x.dim("time")); };
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(f, ones({time})));
  expect_values(saved({{"x", ones({4})}}).at("y"), {1, 2, 3, 4});
}

TEST(SaveOnnxTest, DrawsAreInputsOnRequest) {
  const auto f = [](const Tensor& x) { return x + random_normal({2, 2}); };
  const OnnxModel saved =
      load_onnx_bytes(onnx_bytes(f, some_input(), {.draws = OnnxDraws::inputs}));
  EXPECT_EQ(saved.input_names(), (Names{"x", "draw"}));
  expect_values(saved({{"x", zeros({2, 2})}, {"draw", some_input()}}).at("y"), {1, 2, 3, 4});
}

TEST(SaveOnnxTest, AStateMayGrowFromASizeThatTheTraceKnows) {
  const auto f = [](const Tensor& x) {
    return while_loop([](const Tensor& s) { return sum(s) < 10; },
                      [](const Tensor& s) {
                        return concat({s, s + 1}, 0);
                      },
                      x, {.shape_invariants = {PartialShape{unknown}}});
  };
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(f, ones({2})));
  expect_values(saved({{"x", ones({2})}}).at("y"), {1, 1, 2, 2, 2, 2, 3, 3});
}

/// Returns the model of a function with its draws as inputs.
template <class F>
OnnxModel with_drawn_inputs(const F& f, const Tensor& x) {
  return load_onnx_bytes(onnx_bytes(
      f, x, {.arguments = {"x"}, .results = {"noise", "y"}, .draws = OnnxDraws::inputs}));
}

TEST(SaveOnnxTest, DrawsInALoopAreAnInputWithAnAxisForItsIterations) {
  for (const bool reverse : {false, true}) {
    const auto f = [=](const Tensor& x) {
      auto [ys, last, dim] = scan(Scan{.initial = zeros({2}),
                                       .xs = x,
                                       .body =
                                           [](const Tensor& x, const Tensor& s) {
                                             const Tensor noise = random_normal({2});
                                             return std::pair{noise, tanh(s + x * noise)};
                                           },
                                       .reverse = reverse});
      return std::pair{ys, last};
    };
    const OnnxModel saved = with_drawn_inputs(f, ones({3, 2}));
    EXPECT_EQ(saved.input_names(), (Names{"x", "draw"}));
    const auto [noise, last] = f(ones({3, 2}));
    const auto outputs = saved({{"x", ones({3, 2})}, {"draw", noise}});
    expect_all_close(outputs.at("noise"), noise);
    expect_all_close(outputs.at("y"), last);
    EXPECT_THROW(saved({{"x", ones({3, 2})}, {"draw", ones({2, 2})}}), ShapeError);
  }
}

/// The outer loop ends by its condition, so that the model takes any number of its iterations.
TEST(SaveOnnxTest, DrawsInLoopsInLoopsHaveAnAxisForEachLoop) {
  const auto f = [](const Tensor& x) {
    const auto inner = [](const Tensor&, const Tensor& s) { return s + random_normal({2}); };
    const auto body = [&](const Tensor& i, const Tensor& s) {
      return std::pair{i + 1, fori_loop(0, 2, inner, s)};
    };
    const auto [i, y] = while_loop([](const Tensor& i, const Tensor&) { return i < 3; }, body,
                                   std::pair{scalar(0), x});
    return std::pair{i, y};
  };
  const OnnxModel saved = with_drawn_inputs(f, ones({2}));
  const Tensor draws =
      cast(reshape(range(16), {4, 2, 2}), f32);  // one iteration more than it reads
  expect_values(saved({{"x", ones({2})}, {"draw", draws}}).at("y"), {31, 37});
}

TEST(SaveOnnxTest, DrawsInConditionsAndBranchesAreInputs) {
  const auto f = [](const Tensor& x) {
    const Tensor more =
        while_loop([](const Tensor& s) { return sum(s) < random_uniform({}, 5, 9); },
                   [](const Tensor& s) { return s + 1; }, x);
    return std::pair{more, cond(
                               sum(x) > 0, [&] { return x + random_normal({2}); },
                               [&] { return x - random_normal({2}); })};
  };
  const OnnxModel saved = with_drawn_inputs(f, ones({2}));
  EXPECT_EQ(saved.input_names().size(), 4U);
  std::map<std::string, Tensor> inputs{{"x", ones({2})}};
  inputs["draw"] = tensor({8., 3., 8., 1.}, f32);
  inputs["draw_1"] = tensor({1., 2.}, f32);
  inputs["draw_2"] = tensor({10., 20.}, f32);
  expect_values(saved(inputs).at("noise"), {2, 2});
  expect_values(saved(inputs).at("y"), {2, 3});
  inputs["x"] = -ones({2});
  expect_values(saved(inputs).at("y"), {-11, -21});
}

/// The gradient computes the body, and so its draws, again.
TEST(SaveOnnxTest, DrawsThatAGradientComputesAgainAreOneInput) {
  const auto f = [](const Tensor& x) {
    const auto step = checkpoint([](const Tensor& s) { return tanh(s) * random_normal({2}); });
    const auto loss = [&](const Tensor& x) {
      return sum(fori_loop(
          0, 3, [&](const Tensor&, const Tensor& s) { return step(s); }, x));
    };
    return std::pair{loss(x), grad(loss)(x)};
  };
  const auto draws_of = [](const Tensor& x, const Tensor& noise) {
    const auto loss = [&](const Tensor& x) {
      Tensor s = x;
      for (const Tensor& row : unstack(noise)) s = tanh(s) * row;
      return sum(s);
    };
    return grad(loss)(x);
  };
  const Tensor x = tensor({0.3, 0.5}, f32), noise = tensor({{1., 2.}, {0.5, -1.}, {3., 1.}}, f32);
  const OnnxModel saved = with_drawn_inputs(
      [&](const Tensor& x) {
        auto [loss, gradient] = f(x);
        return std::pair{gradient, gradient * 2};
      },
      x);
  EXPECT_EQ(saved.input_names(), (Names{"x", "draw"}));
  expect_all_close(saved({{"x", x}, {"draw", noise}}).at("noise"), draws_of(x, noise));
}

TEST(SaveOnnxTest, DrawsAreNodesOtherwise) {
  const auto f = [](const Tensor& x) { return x + random_uniform({2, 2}, 3, 4); };
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(f, zeros({2, 2})));
  EXPECT_EQ(saved.input_names(), Names{"x"});
  const std::vector<double> values = values_of(saved({{"x", zeros({2, 2})}}).at("y"));
  for (const double value : values) EXPECT_TRUE(value >= 3 && value < 4) << value;
}

TEST(SaveOnnxTest, PrintsAreLeftOut) {
  const auto f = [](const Tensor& x) { return print(x * 2, "twice"); };
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(f, some_input()));
  testing::internal::CaptureStdout();
  const Tensor y = saved({{"x", some_input()}}).at("y");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  expect_values(y, {2, 4, 6, 8});
}

TEST(SaveOnnxTest, APairIsTheOnlyArgument) {
  const auto f = [](const std::pair<Tensor, Tensor>& state) { return state.first * state.second; };
  const std::pair state{some_input(), some_input()};
  const OnnxModel saved = load_onnx_bytes(onnx_bytes(f, state, {.arguments = {"state"}}));
  EXPECT_EQ(saved.input_names().size(), 2U);
  EXPECT_EQ(onnx_bytes(f, state), onnx_bytes(f, std::make_tuple(state)));
}

TEST(SaveOnnxTest, ATrainedModelLearnsOn) {
  Layer layer = some_layer();
  OnnxModel saved = load_onnx_bytes(onnx_bytes(apply, std::tuple{layer, some_input()},
                                               {.arguments = {"", "x"}, .parameters = {0}}));
  const auto loss_of = [](const Tensor& y) { return mean(square(y)); };
  const auto of_layer =
      value_and_grad([&](const Layer& m) { return loss_of(apply(m, some_input())); });
  const auto of_saved = value_and_grad([&](const OnnxModel& m) {
    return loss_of(m({{"x", some_input()}}).at("y"));
  });
  Adam adam(layer, {.learning_rate = 0.1});
  Adam other(saved, {.learning_rate = 0.1});
  for (int step = 0; step < 5; ++step) {
    const auto [loss, gradient] = of_layer(layer);
    const auto [same_loss, same_gradient] = of_saved(saved);
    EXPECT_NEAR(loss.item<float>(), same_loss.item<float>(), 1e-4) << "step " << step;
    adam.update(layer, gradient);
    other.update(saved, same_gradient);
  }
}

// ---- Errors -------------------------------------------------------------------------------------

/// Returns a message without the lines of this file.
std::string without_lines(std::string text) {
  // " at FILE.cpp:LINE", with a path as the build has it
  for (std::size_t end; (end = text.find(".cpp:")) != std::string::npos;) {
    const std::size_t at = text.rfind(" at ", end);
    text.erase(at, text.find_first_of(":\n", end + 5) - at);
  }
  return text;
}

TEST(SaveOnnxTest, AllOpsThatOnnxCannotExpressAreInOneError) {
  const auto f = [](const Tensor& x) {
    const Tensor drawn = while_loop([](const Tensor& s) { return sum(s) < 10; },
                                    [](const Tensor& s) {
                                      return concat({s, s + random_normal(s.dims())}, 0);
                                    },
                                    x, {.shape_invariants = {PartialShape{unknown}}});
    return sum(drawn) + truncated_normal({2});
  };
  const std::string message = message_of<OnnxError>(
      [&] { onnx_bytes(f, ones({2}), {.draws = OnnxDraws::inputs, .name = "noise"}); });
  EXPECT_EQ(without_lines(message),
            "save_onnx: ONNX cannot express 1 op of \"noise\":\n"
            "  random_normal: its dim ? has a size of its own in each iteration or branch");
  const std::string other =
      message_of<OnnxError>([&] { onnx_bytes(f, ones({2}), {.name = "noise"}); });
  EXPECT_EQ(without_lines(other),
            "save_onnx: ONNX cannot express 1 op of \"noise\":\n"
            "  truncated_normal: ONNX has no such distribution; OnnxDraws::inputs makes the draw "
            "an input");
}

TEST(SaveOnnxTest, AStateThatChangesItsRankIsAnError) {
  const auto f = [](const Tensor& x) {
    const auto [i, last] =
        while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                   [](const Tensor& i, const Tensor& s) {
                     return std::tuple{i + 1, stack({s, s}, 0)};
                   },
                   std::tuple{scalar(0), x},
                   {.shape_invariants = {std::nullopt, PartialShape::unknown_rank()}});
    return sum(ensure_shape(last, PartialShape{2, 2, unknown}));
  };
  const std::string message = message_of<OnnxError>([&] { onnx_bytes(f, ones({2})); });
  EXPECT_NE(message.find("stack_unranked at "), std::string::npos) << message;
  EXPECT_NE(message.find(": a state of a loop that changes its rank"), std::string::npos);
}

TEST(SaveOnnxTest, ErrorsNameTheLinesOfTheOps) {
  const auto f = [](const Tensor& x) {
    const Dim batch("batch", 2);
    const Tensor a = truncated_normal({2, 2}), b = truncated_normal({2, 2});
    return x + a + b;
  };
  const std::string message = message_of<OnnxError>([&] { onnx_bytes(f, some_input()); });
  EXPECT_NE(message.find("cannot express 2 ops"), std::string::npos) << message;
  EXPECT_NE(message.find("save_onnx_test.cpp:"), std::string::npos) << message;
}

TEST(SaveOnnxTest, ArgumentsThatDoNotExistAreErrors) {
  const auto f = [](const Tensor& x) { return x; };
  EXPECT_EQ(message_of<ArgumentError>([&] { onnx_bytes(f, some_input(), {.parameters = {1}}); }),
            "save_onnx: parameters lists argument 1, but the function has 1");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              onnx_bytes(f, some_input(), {.arguments = {"a", "b"}});
            }),
            "save_onnx: there are 2 names for arguments, but the function has 1");
}

// ---- Files --------------------------------------------------------------------------------------

class SaveOnnxFileTest : public InOwnFolder {
 protected:
  SaveOnnxFileTest() : InOwnFolder("model.onnx") {}
};

TEST_F(SaveOnnxFileTest, LoadOnnxReadsTheWrittenFile) {
  save_onnx(
      path, [](const Tensor& x) { return x * 2; }, some_input());
  expect_values(load_onnx(path)({{"x", some_input()}}).at("y"), {2, 4, 6, 8});
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(SaveOnnxFileTest, AFunctionThatCannotBeSavedLeavesTheFile) {
  write(path, "as before");
  EXPECT_THROW(save_onnx(
                   path,
                   [](const Tensor& x) {
                     return x + truncated_normal({2, 2});
                   },
                   some_input()),
               OnnxError);
  EXPECT_EQ(bytes_of(path), "as before");
}

}  // namespace
}  // namespace reel
