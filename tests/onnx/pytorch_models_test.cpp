// Models that PyTorch exported, from ONNX's test data, are trained in a trace; the training step is
// saved, and run by onnxruntime.
#include <filesystem>

#include "reel/tests/onnx/case_files.h"
#include "reel/tests/onnx/onnxruntime.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

using Values = std::map<std::string, Tensor>;

/// Returns the mean square of all outputs.
Tensor loss_of(const OnnxModel& model, const Values& inputs) {
  Tensor total;
  for (const auto& [name, y] : model(inputs)) {
    const Tensor loss = mean(square(y));
    total = total.is_defined() ? total + loss : loss;
  }
  return total;
}

std::tuple<Tensor, OnnxModel, Sgd<OnnxModel>> step(OnnxModel model, Sgd<OnnxModel> optimiser,
                                                   const Values& inputs) {
  auto [loss, gradient] =
      value_and_grad([&](const OnnxModel& m) { return loss_of(m, inputs); })(model);
  optimiser.update(model, gradient);
  return {loss, model, optimiser};
}

/// A model with parameters, and the inputs of its first example.
struct PyTorchModel {
  std::string name;
  OnnxModel model;
  Values inputs;
  Sgd<OnnxModel> optimiser() const {
    return Sgd<OnnxModel>(model, {.learning_rate = 1e-3, .momentum = 0.5});
  }
};

std::vector<PyTorchModel> pytorch_models() {
  std::vector<PyTorchModel> models;
  for (const char* set : {"pytorch-converted", "pytorch-operator"})
    for (const CaseFiles& files : case_files(REEL_ONNX_DATA, set)) {
      PyTorchModel made{std::filesystem::path(files.folder).filename().string(),
                        load_onnx(files.folder + "/model.onnx"),
                        {}};
      if (made.model.parameters.empty()) continue;
      const CaseData data = case_data(files).at(0);
      for (const auto& [input, value] : data.inputs) made.inputs[input] = value.tensor.value();
      models.push_back(std::move(made));
    }
  return models;
}

class PyTorchModelsTest : public InOwnFolder {
 protected:
  PyTorchModelsTest() : InOwnFolder("cases.txt") {}
  void SetUp() override {
    if (!std::filesystem::exists(REEL_ONNX_DATA))
      GTEST_SKIP() << "SKIPPED: there is no " << REEL_ONNX_DATA << " (Debian: libonnx-testdata)";
  }
};

TEST_F(PyTorchModelsTest, TrainingLowersTheLossInOneTrace) {
  const std::vector<PyTorchModel> models = pytorch_models();
  EXPECT_GT(models.size(), 40U);
  for (const PyTorchModel& of : models) {
    const auto traced = jit(step);
    OnnxModel trained = of.model;
    Sgd<OnnxModel> optimiser = of.optimiser();
    Tensor loss;
    for (int i = 0; i < 5; ++i)
      std::tie(loss, trained, optimiser) = traced(trained, optimiser, of.inputs);
    EXPECT_LT(loss_of(trained, of.inputs).item<float>(), loss_of(of.model, of.inputs).item<float>())
        << of.name;
    EXPECT_EQ(traced.trace_count(), 1) << of.name;
  }
}

TEST_F(PyTorchModelsTest, HaveTrainingStepsThatOnnxruntimeComputes) {
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kOnnxruntime << " is missing";
  std::vector<SavedCase> cases;
  for (const PyTorchModel& of : pytorch_models()) {
    cases.push_back(saved_case(of.name, step, std::tuple{of.model, of.optimiser(), of.inputs},
                               {.arguments = {"model", "optimiser", "inputs"},
                                .results = {"loss", "next_model", "next_optimiser"}}));
    cases.back().tolerance = 1e-4;
  }
  const std::vector<OnnxruntimeResult> results = run_onnxruntime(cases, folder_);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(cases[i].failure + results[i].error, "") << cases[i].name;
    if (results[i].error.empty()) expect_outputs(cases[i], results[i].outputs, "by onnxruntime");
  }
}

}  // namespace
}  // namespace reel
