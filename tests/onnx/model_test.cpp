// OnnxModel is a tree of tensors and a function: gradients, traces, vmap, training.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"
#include "reel/tests/onnx/model_text.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

constexpr const char* kLinear = R"(
  g (double[n, 2] x) => (double[n, 2] y)
  <double[2, 2] w = {1, 2, 3, 4}, double[2] b = {10, 20}> {
    product = MatMul(x, w)
    y = Add(product, b)
  })";

/// Returns the model's output `y` for x, weighted and summed, so that errors do not cancel.
Tensor loss_of(const OnnxModel& model, const Tensor& x) {
  const Tensor y = model({{"x", x}}).at("y");
  const Tensor flat = reshape(y, {-1});
  return sum(flat * (cast(range(flat.dim(0)), f64) * 0.3 + 1));
}

/// Draws f64 parameters.
OnnxModel with_draws(const OnnxModel& model) {
  manual_seed(3);
  return tree_map([](const Tensor& x) { return random_normal(x.dims(), f64) * 0.5; }, model);
}

using OnnxModelTest = InEveryMode;
REEL_IN_EVERY_MODE(OnnxModelTest);

TEST(OnnxModelTreeTest, LeavesAreTheFloatingInitializersByName) {
  const OnnxModel model = model_of(kLinear);
  EXPECT_EQ(tree_paths(model), (std::vector<std::string>{"b", "w"}));
  EXPECT_EQ(tree_paths(model, "model"), (std::vector<std::string>{"model.b", "model.w"}));
  EXPECT_EQ(model.input_names(), std::vector<std::string>{"x"});
  EXPECT_EQ(model.output_names(), std::vector<std::string>{"y"});
}

TEST_P(OnnxModelTest, ComputesItsOutputs) {
  const OnnxModel model = model_of(kLinear);
  const auto f = run([](const OnnxModel& m, const Tensor& x) { return m({{"x", x}}).at("y"); });
  expect_values(f(model, tensor({{1., 0.}, {0., 1.}}, f64)), {11, 22, 13, 24});
}

TEST_P(OnnxModelTest, ItsGradientIsAModel) {
  const OnnxModel model = model_of(kLinear);
  const Tensor x = tensor({{1., 2.}}, f64);
  const OnnxModel gradient = run([](const OnnxModel& m, const Tensor& x) {
    return grad([&](const OnnxModel& m) { return sum(m({{"x", x}}).at("y")); })(m);
  })(model, x);
  expect_values(gradient.parameters.at("w"), {1, 1, 2, 2});
  expect_values(gradient.parameters.at("b"), {1, 1});
}

constexpr const char* kLstm = R"(
  g (double[3, 2, 2] x) => (double[3, 2, 2, 2] y)
  <double[2, 8, 2] w, double[2, 8, 2] r, double[2, 16] b, int32[2] lengths = {3, 2},
   double[2, 2, 2] h0, double[2, 2, 2] c0, double[2, 6] p> {
    y, h, c = LSTM <hidden_size = 2, direction = "bidirectional"> (x, w, r, b, lengths, h0, c0, p)
  })";

/// Returns a model text with zeros for double initializers that have no numbers.
std::string with_zeros(std::string text) {
  for (std::size_t at = text.find("double["); at != std::string::npos;
       at = text.find("double[", at + 1)) {
    const std::size_t close = text.find(']', at);
    std::size_t end = close + 2;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
    if (text[end] != ',' && text[end] != '>') continue;
    std::size_t count = 1;
    for (std::size_t i = at + 7; i < close; i = text.find_first_of(",]", i) + 1)
      count *= std::stoul(text.substr(i));
    std::string zeros;
    for (std::size_t i = 0; i < count; ++i) zeros += i ? ", 0" : "0";
    text.insert(end, " = {" + zeros + "}");
  }
  return text;
}

TEST_P(OnnxModelTest, GradientsOfAnLstmAreDerivatives) {
  const OnnxModel model = with_draws(model_of(with_zeros(kLstm)));
  EXPECT_EQ(model.parameters.size(), 6U);
  manual_seed(1);
  const Tensor x = random_normal({3, 2, 2}, f64);
  const auto loss = [&](const OnnxModel& m) { return loss_of(m, x); };
  expect_gradient_of(loss, model, run([&](const OnnxModel& m) { return grad(loss)(m); })(model));
}

constexpr const char* kLoop = R"(
  g (double[2] x) => (double[2] last, double[n, 2] y)
  <double[2] w = {0.5, 0.7}, int64 trips = {4}, bool yes = {1}> {
    last, y = Loop <body = b (int64 i, bool go, double[2] state) => (bool next_go, double[2] next, double[2] row) {
      next_go = Identity(go)
      product = Mul(state, w)
      next = Sin(product)
      row = Mul(next, state)
    }> (trips, yes, x)
  })";

TEST_P(OnnxModelTest, GradientsOfALoopAreDerivatives) {
  const OnnxModel model = model_of(kLoop);
  const Tensor x = tensor({0.4, 1.1}, f64);
  const auto loss = [&](const OnnxModel& m) { return loss_of(m, x); };
  expect_gradient_of(loss, model, run([&](const OnnxModel& m) { return grad(loss)(m); })(model));
}

/// Ends at the first state with a sum above a limit.
constexpr const char* kLoopWithCondition = R"(
  g (double[2] x) => (double[2] y)
  <double[2] w = {1.5, 1.7}, double limit = {20}, int64 trips = {100}> {
    y = Loop <body = b (int64 i, bool go, double[2] state) => (bool next_go, double[2] next) {
      next = Mul(state, w)
      total = ReduceSum <keepdims = 0> (next)
      next_go = Less(total, limit)
    }> (trips, , x)
  })";

TEST_P(OnnxModelTest, ALoopEndsByItsCondition) {
  const OnnxModel model = model_of(kLoopWithCondition);
  const auto f = run([](const OnnxModel& m, const Tensor& x) { return m({{"x", x}}).at("y"); });
  const double a = std::pow(1.5, 6),
               b = std::pow(1.7, 6);  // after five iterations the first sum is 21.8
  expect_values(f(model, tensor({1., 1.}, f64)), {a / 1.5, b / 1.7});
  expect_values(f(model, tensor({0.5, 0.5}, f64)), {a * 0.75, b * 0.85});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxModelTest, GradientsOfALoopThatEndsByItsConditionAreDerivatives) {
  const OnnxModel model = model_of(kLoopWithCondition);
  const Tensor x = tensor({0.9, 1.1}, f64);
  const auto loss = [&](const OnnxModel& m) { return loss_of(m, x); };
  expect_gradient_of(loss, model, run([&](const OnnxModel& m) { return grad(loss)(m); })(model),
                     1e-6);
}

constexpr const char* kScan = R"(
  g (double[2] h0, double[3, 2] x) => (double[2] last, double[3, 2] y)
  <double[2] w = {0.5, 0.7}> {
    last, y = Scan <num_scan_inputs = 1, scan_input_directions = [1],
      body = b (double[2] h, double[2] x_t) => (double[2] next, double[2] row) {
        product = Mul(h, w)
        next = Add(product, x_t)
        row = Tanh(next)
      }> (h0, x)
  })";

TEST_P(OnnxModelTest, GradientsOfAScanAreDerivatives) {
  const OnnxModel model = model_of(kScan);
  const Tensor x = tensor({{0.4, 1.1}, {0.2, -0.3}, {0.9, 0.6}}, f64),
               h0 = tensor({0.1, -0.2}, f64);
  const auto loss = [&](const OnnxModel& m) {
    const auto out = m({{"x", x}, {"h0", h0}});
    return sum(out.at("y") * (cast(range(2), f64) + 0.5)) + sum(square(out.at("last")));
  };
  expect_gradient_of(loss, model, run([&](const OnnxModel& m) { return grad(loss)(m); })(model));
}

TEST_P(OnnxModelTest, ALoopWithoutIterationsReturnsItsState) {
  const OnnxModel model = model_of(R"(
    g (double[2] x, int64 trips) => (double[2] last, double[n, 2] y) <bool yes = {1}> {
      last, y = Loop <body = b (int64 i, bool go, double[2] state) => (bool next_go, double[2] next, double[2] row) {
        next_go = Identity(go)
        next = Add(state, state)
        row = Identity(next)
      }> (trips, yes, x)
    })");
  const auto f = run([](const OnnxModel& m, const Tensor& x, const Tensor& trips) {
    return m({{"x", x}, {"trips", trips}});
  });
  const Tensor x = tensor({1., 2.}, f64);
  const auto none = f(model, x, scalar(0, i64)), two = f(model, x, scalar(2, i64));
  expect_values(none.at("last"), {1, 2});
  EXPECT_EQ(none.at("y").shape(), (std::vector<std::int64_t>{0, 2}));
  expect_values(two.at("last"), {4, 8});
  expect_values(two.at("y"), {2, 4, 4, 8});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(OnnxModelTest, ABranchMayDependOnAnArgument) {
  const OnnxModel model = model_of(R"(
    g (double x, bool p) => (double y) <double w = {3}> {
      y = If <then_branch = t () => (double a) { a = Mul(x, w) },
              else_branch = e () => (double b) { b = Add(x, w) }> (p)
    })");
  const auto f = run([&](const Tensor& x, const Tensor& p) {
    return grad([&](const Tensor& x) { return square(model({{"x", x}, {"p", p}}).at("y")); })(x);
  });
  expect_values(f(scalar(2., f64), scalar(true)), {36});
  expect_values(f(scalar(2., f64), scalar(false)), {10});
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(OnnxModelTrainingTest, AnImportedLstmLearns) {
  OnnxModel model = with_draws(model_of(with_zeros(kLstm)));
  manual_seed(1);
  const Tensor x = random_normal({3, 2, 2}, f64),
               target = random_uniform({3, 2, 2, 2}, -0.5, 0.5, f64);
  const auto loss = [&](const OnnxModel& m) {
    // The second entry has two elements only.
    const Tensor y = m({{"x", x}}).at("y");
    return mean(square(y - where(equal(y, 0.), zeros_like(y), target)));
  };
  const auto step = jit([&](const OnnxModel& m) {
    auto [value, gradient] = value_and_grad(loss)(m);
    return std::pair{
        value, tree_map([](const Tensor& w, const Tensor& g) { return w - g * 0.5; }, m, gradient)};
  });
  const double before = loss(model).item<double>();
  for (int i = 0; i < 400; ++i) model = step(model).second;
  EXPECT_LT(loss(model).item<double>(), before / 3);
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(OnnxModelTrainingTest, AdamUpdatesAModel) {
  OnnxModel model = model_of(kLinear);
  const Tensor x = tensor({{1., 2.}}, f64);
  Adam<OnnxModel> adam(model, {.learning_rate = 0.5});
  const OnnxModel gradient = grad([&](const OnnxModel& m) {
    return sum(m({{"x", x}}).at("y"));
  })(model);
  adam.update(model, gradient);
  expect_values(model.parameters.at("b"), {9.5, 19.5}, 1e-6);  // the first step has the rate's size
}

/// Has the file of the parameters in a folder of the test's own.
class OnnxModelFilesTest : public InOwnFolder {
 protected:
  OnnxModelFilesTest() : InOwnFolder("model.safetensors") {}
};

TEST_F(OnnxModelFilesTest, ParametersAreSavedAndLoadedByName) {
  const OnnxModel model = model_of(kLinear);
  save_safetensors(path, model);
  OnnxModel other = tree_map([](const Tensor& x) { return zeros_like(x); }, model);
  load_safetensors(path, other);
  for (const auto& [name, parameter] : model.parameters)
    expect_same_bits(other.parameters.at(name), parameter);
}

TEST(OnnxModelTreeTest, VmapAppliesItToRows) {
  const OnnxModel model = model_of(kLoop);
  const Tensor rows = tensor({{0.4, 1.1}, {0.2, 0.3}}, f64);
  const Tensor all = vmap([&](const Tensor& x) { return model({{"x", x}}).at("last"); })(rows);
  for (int i = 0; i < 2; ++i) {
    const Tensor row = gather(rows, scalar(i), 0);
    expect_all_close(gather(all, scalar(i), 0), model({{"x", row}}).at("last"));
  }
}

}  // namespace
}  // namespace reel
