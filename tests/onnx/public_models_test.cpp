// Models that people download: Reel's values are onnxruntime's, gradients are finite.
// Needs node and npm.
#include "reel/tests/onnx/public_models.h"

#include "reel/onnx.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/onnxruntime.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class PublicOnnxModelsTest : public InOwnFolder {
 protected:
  PublicOnnxModelsTest() : InOwnFolder("cases") {}
  void SetUp() override {
    if (!has_onnxruntime() || !has_public_models())
      GTEST_SKIP() << "needs node, npm and packages of npm";
    InOwnFolder::SetUp();
  }
  static std::string file_of(const PublicModel& model) { return "node_modules/" + model.file; }
};

std::map<std::string, Tensor> run(const OnnxModel& model, const std::map<std::string, Tensor>& in) {
  return model(in);
}

TEST_F(PublicOnnxModelsTest, EagerAndTracedValuesAreThoseOfOnnxruntime) {
  const std::vector<PublicModel> models = public_models();
  std::vector<SavedCase> cases;
  for (const PublicModel& model : models)
    cases.push_back({model.name, bytes_of(file_of(model)), model.inputs, {}, {}, 0, {}});
  const std::vector<OnnxruntimeResult> results = run_onnxruntime(cases, folder_);
  for (std::size_t i = 0; i < models.size(); ++i) {
    SCOPED_TRACE(models[i].name);
    ASSERT_EQ(results[i].error, "");
    const OnnxModel model = load_onnx(file_of(models[i]));
    for (const auto& outputs : {run(model, models[i].inputs), jit(run)(model, models[i].inputs)}) {
      ASSERT_EQ(outputs.size(), results[i].outputs.size());
      for (const auto& [name, expected] : results[i].outputs)
        expect_all_close(outputs.at(name), expected, models[i].tolerance);
    }
  }
}

Tensor loss_of(const OnnxModel& model, const std::map<std::string, Tensor>& inputs) {
  Tensor total = scalar(0.F);
  for (const auto& [name, y] : model(inputs)) total = total + mean(square(y - 0.1));
  return total;
}
std::pair<Tensor, OnnxModel> loss_and_gradient(const OnnxModel& model,
                                               const std::map<std::string, Tensor>& inputs) {
  return value_and_grad(loss_of)(model, inputs);
}

// The outputs of some models are saturated for these inputs, so that their gradients are zeros.
TEST_F(PublicOnnxModelsTest, GradientsOfEachModelAreFinite) {
  for (const PublicModel& given : public_models()) {
    SCOPED_TRACE(given.name);
    const OnnxModel model = load_onnx(file_of(given));
    ASSERT_FALSE(model.parameters.empty());
    const auto [value, gradient] = jit(loss_and_gradient)(model, given.inputs);
    for (const auto& [name, g] : gradient.parameters)
      EXPECT_TRUE(all(isfinite(g)).item<bool>()) << name;
  }
}

TEST_F(PublicOnnxModelsTest, AdamLowersALossOfSilero) {
  const PublicModel given = public_models().front();
  OnnxModel model = load_onnx(file_of(given));
  Adam adam(model, {.learning_rate = 1e-5});
  const auto gradient = jit(loss_and_gradient);
  const float before = loss_of(model, given.inputs).item<float>();
  for (int i = 0; i < 3; ++i) adam.update(model, gradient(model, given.inputs).second);
  EXPECT_LT(loss_of(model, given.inputs).item<float>(), before);
}

TEST_F(PublicOnnxModelsTest, SilerosRateMayBeAnArgumentOfATrace) {
  const PublicModel given = public_models().front();
  const OnnxModel model = load_onnx(file_of(given));
  const auto traced = jit([&](const std::map<std::string, Tensor>& in) { return model(in); });
  expect_all_close(traced(given.inputs).at("output"), model(given.inputs).at("output"), 1e-5);
}

}  // namespace
}  // namespace reel
