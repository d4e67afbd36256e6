// Parameters of loaded models: which constants they are, and their names.
#include <functional>

#include "reel/onnx/proto.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

using Names = std::vector<std::string>;

Tensor y_of(const OnnxModel& model, const Tensor& x) { return model({{"x", x}}).at("y"); }

/// A model with weights that are Constant nodes.
constexpr const char* kConstants = R"(
  g (float[n, 2] x) => (float[n, 2] y) {
    w = Constant <value = float[2, 2] {1, 2, 3, 4}> ()
    b = Constant <value_floats = [10.0, 20.0]> ()
    half = Constant <value = float {0.5}> ()
    places = Constant <value = int64[2] {0, 1}> ()
    product = MatMul(x, w)
    sum = Add(product, b)
    scaled = Mul(sum, half)
    y = Gather <axis = 1> (scaled, places)
  })";

TEST(OnnxParametersTest, FloatingConstantNodesAreParametersAndSingleNumbersAreNot) {
  const OnnxModel model = model_of(kConstants);
  EXPECT_EQ(tree_paths(model), (Names{"b", "w"}));
  expect_values(y_of(model, tensor({{1., 0.}})), {5.5, 11});
}

TEST(OnnxParametersTest, InitializersOfOneElementAreConstants) {
  const OnnxModel model = model_of(R"(
    g (float[2] x) => (float[2] y) <float a = {2}, float[1] b = {3}, float[2] w = {4, 5}> {
      p = Mul(x, a)
      q = Add(p, b)
      y = Mul(q, w)
    })");
  EXPECT_EQ(tree_paths(model), Names{"w"});
  expect_values(y_of(model, tensor({1., 2.})), {20, 35});
}

TEST(OnnxParametersTest, AdamMovesWeightsThatAreConstantNodes) {
  OnnxModel model = model_of(kConstants);
  const Tensor x = tensor({{1., 2.}, {3., -1.}});
  const auto loss = [&](const OnnxModel& m) { return mean(square(y_of(m, x))); };
  Adam adam(model, {.learning_rate = 0.1});
  const auto step = jit([&](OnnxModel m, Adam<OnnxModel> a) {
    auto [value, gradient] = value_and_grad(loss)(m);
    a.update(m, gradient);
    return std::tuple{value, m, a};
  });
  const float first = loss(model).item<float>();
  for (int i = 0; i < 20; ++i) {
    auto [value, next, optimiser] = step(model, adam);
    model = next;
    adam = optimiser;
  }
  EXPECT_LT(loss(model).item<float>(), 0.6F * first);
}

TEST(OnnxParametersTest, ScalesAndRegionsOfResizeAreConstants) {
  const OnnxModel model = model_of(R"(
    g (float[1, 1, 2] x) => (float[1, 1, 4] y) <float[3] scales = {1, 1, 2}, float[3] w = {1, 2, 3}> {
      roi = Constant <value = float[6] {0, 0, 0, 1, 1, 1}> ()
      y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric"> (x, roi, scales)
    })",
                                   13);
  EXPECT_EQ(tree_paths(model), Names{"w"});
  const auto f = jit([](const OnnxModel& m, const Tensor& x) { return y_of(m, x); });
  expect_values(f(model, tensor({{{1., 2.}}})), {1, 1, 2, 2});
}

TEST(OnnxParametersTest, ConstantsFromWhichSizesAreComputedAreConstants) {
  const OnnxModel model = model_of(R"(
    g (float[a, b] x) => (float[c, d] y) <float[2] twice = {2, 2}, float[2] w = {1, 2}> {
      size = Shape(x)
      wide = Cast <to = 1> (size)
      more = Mul(wide, twice)
      wanted = Cast <to = 7> (more)
      one = Constant <value = float {1}> ()
      filled = Expand(one, wanted)
      scaled = Mul(x, w)
      total = ReduceSum <keepdims = 0> (scaled)
      y = Mul(filled, total)
    })");
  EXPECT_EQ(tree_paths(model), Names{"w"});
  const auto f = jit([](const OnnxModel& m, const Tensor& x) { return y_of(m, x); });
  EXPECT_EQ(f(model, tensor({{1., 2.}})).shape(), (std::vector<std::int64_t>{2, 4}));
}

TEST(OnnxParametersTest, WeightsOfANetworkThatPredictsALengthAreParameters) {
  const OnnxModel model = model_of(R"(
    g (float[2] x) => (float[n] y) <float[2] w = {1, 2}> {
      zero = Constant <value = float {0}> ()
      one = Constant <value = float {1}> ()
      product = Mul(x, w)
      length = ReduceSum <keepdims = 0> (product)
      y = Range(zero, length, one)
    })");
  EXPECT_EQ(tree_paths(model), Names{"w"});
  expect_values(y_of(model, tensor({1., 1.})), {0, 1, 2});
}

/// Both branches have a constant w; the graph around them has v.
constexpr const char* kBranches = R"(
  g (float[2] x, bool up) => (float[2] y) {
    v = Constant <value = float[2] {1, 2}> ()
    z = If (up) <
      then_branch = up_branch () => (float[2] a) {
        w = Constant <value = float[2] {10, 20}> ()
        a = Mul(x, w)
      },
      else_branch = down_branch () => (float[2] b) {
        w = Constant <value = float[2] {-1, -2}> ()
        u = Constant <value = float[2] {5, 6}> ()
        c = Mul(x, w)
        b = Add(c, u)
      }>
    y = Add(z, v)
  })";

TEST(OnnxParametersTest, EqualNamesInBranchesHaveNodeAndBranchInFront) {
  const OnnxModel model = model_of(kBranches);
  EXPECT_EQ(tree_paths(model), (Names{"u", "v", "z/else_branch/w", "z/then_branch/w"}));
  using Function = std::function<Tensor(const OnnxModel&, const Tensor&, const Tensor&)>;
  const auto run = [](const OnnxModel& m, const Tensor& x, const Tensor& up) {
    return m({{"x", x}, {"up", up}}).at("y");
  };
  const Tensor x = tensor({1., 1.});
  for (const auto& f : {Function(run), Function(jit(run))}) {
    expect_values(f(model, x, scalar(true)), {11, 22});
    expect_values(f(model, x, scalar(false)), {5, 6});
  }
  const OnnxModel gradient =
      grad([&](const OnnxModel& m) { return sum(run(m, x, scalar(true))); })(model);
  expect_values(gradient.parameters.at("z/then_branch/w"), {1, 1});
  expect_values(gradient.parameters.at("z/else_branch/w"), {0, 0});
}

TEST(OnnxParametersTest, ConstantsInTheBodyOfALoopAreParameters) {
  const OnnxModel model = model_of(R"(
    g (float[2] x) => (float[2] y) {
      count = Constant <value = int64 {3}> ()
      y = Loop (count, , x) <body = step (int64 i, bool go, float[2] before)
          => (bool next, float[2] after) {
        next = Identity(go)
        w = Constant <value = float[2] {2, 3}> ()
        after = Mul(before, w)
      }>
    })");
  EXPECT_EQ(tree_paths(model), Names{"w"});
  const auto total = [&](const OnnxModel& m) { return sum(y_of(m, tensor({1., 1.}))); };
  using Function = std::function<OnnxModel(const OnnxModel&)>;
  const auto gradient = [&](const OnnxModel& m) { return grad(total)(m); };
  for (const auto& f : {Function(gradient), Function(jit(gradient))})
    expect_values(f(model).parameters.at("w"), {12, 27});  // 3 w^2
}

/// A model that calls a function with a constant twice.
std::string two_calls() {
  ::onnx::ModelProto model;
  model.ParseFromString(model_bytes(R"(
    g (float[2] x) => (float[2] y) { a = local.scale(x) y = local.scale(a) })"));
  ::onnx::ModelProto inner;
  inner.ParseFromString(model_bytes(R"(
    h (float[2] x) => (float[2] out) {
      w = Constant <value = float[2] {2, 3}> ()
      out = Mul(x, w)
    })"));
  auto& function = *model.add_functions();
  function.set_name("scale");
  function.set_domain("local");
  function.add_input("x");
  function.add_output("out");
  auto& import = *function.add_opset_import();
  import.set_domain("");
  import.set_version(17);
  *function.mutable_node() = inner.graph().node();
  return model.SerializeAsString();
}

TEST(OnnxParametersTest, EachCallOfAFunctionHasItsOwnParameters) {
  OnnxModel model = load_onnx_bytes(two_calls());
  EXPECT_EQ(tree_paths(model), (Names{"a/w", "y/w"}));
  expect_values(y_of(model, tensor({1., 1.})), {4, 9});
  model.parameters.at("a/w") = tensor({10., 10.});
  expect_values(y_of(model, tensor({1., 1.})), {20, 30});
}

TEST(OnnxParametersTest, ConstantsOfASavedFunctionStayConstants) {
  const auto f = [](const Tensor& w, const Tensor& x) {
    return x * w + tensor({1., 2.}) + range(Dim(2), f32);
  };
  const auto bytes = onnx_bytes(f, std::tuple{tensor({3., 4.}), tensor({1., 1.})},
                                {.arguments = {"w", "x"}, .parameters = {0}});
  EXPECT_EQ(tree_paths(load_onnx_bytes(bytes)), Names{"w"});
}

TEST(OnnxParametersTest, SavedParametersOfOneElementStayParameters) {
  const auto f = [](const Tensor& w, const Tensor& x) { return x * w; };
  const OnnxModel model = load_onnx_bytes(onnx_bytes(f, std::tuple{scalar(3.F), tensor({1., 1.})},
                                                     {.arguments = {"w", "x"}, .parameters = {0}}));
  EXPECT_EQ(tree_paths(model), Names{"w"});
}

TEST(OnnxParametersTest, AModelWithoutParametersIsNotTrained) {
  const OnnxModel model = model_of("g (float[2] x) => (float[2] y) { y = Tanh(x) }");
  const auto loss = [](const OnnxModel& m) { return sum(y_of(m, tensor({1., 2.}))); };
  EXPECT_EQ(message_of<ArgumentError>([&] { value_and_grad(loss)(model); }),
            "value_and_grad: the first argument has no floating tensor to take the gradient of; a "
            "model that trains has floating parameters");
  EXPECT_EQ(message_of<ArgumentError>([&] { Adam adam(model, {.learning_rate = 0.1}); }),
            "Adam: the parameters have no floating tensor to update");
}

}  // namespace
}  // namespace reel
