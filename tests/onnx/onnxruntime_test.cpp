// Saved functions have their values when onnxruntime runs them. Needs node and npm, and the package
// onnxruntime-node, which is installed into the build folder.
#include "reel/tests/onnx/onnxruntime.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class OnnxruntimeTest : public InOwnFolder {
 protected:
  OnnxruntimeTest() : InOwnFolder("cases.txt") {}
};

/// Expects the outputs of cases that could be saved.
void expect_values_of(const std::vector<SavedCase>& cases,
                      const std::vector<OnnxruntimeResult>& results) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].failure.empty()) continue;
    EXPECT_FALSE(results[i].optimiser_fails) << cases[i].name;
    if (results[i].error.empty())
      expect_outputs(cases[i], results[i].outputs, "by onnxruntime");
    else
      ADD_FAILURE() << cases[i].name << ": " << results[i].error;
  }
}

TEST_F(OnnxruntimeTest, GivesTheValuesOfSavedFunctions) {
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kOnnxruntime << " is missing";
  const std::vector<SavedCase>& cases = all_saved_cases();
  expect_values_of(cases, run_onnxruntime(cases, folder_));  // SavedFunctionsTest reports failures
}

TEST_F(OnnxruntimeTest, GivesTheValuesOfTheSamplesOfOps) {
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kOnnxruntime << " is missing";
  for (const DType dtype : {f32, f64}) {
    std::vector<SavedCase> cases = sample_cases(dtype);
    for (const SavedCase& saved : cases) EXPECT_EQ(saved.failure, "") << saved.name;
    // onnxruntime lacks Erf and Atan for f64.
    if (dtype == f64)
      std::erase_if(cases, [](const SavedCase& saved) {
        return saved.name.starts_with("erf") || saved.name.starts_with("gelu") ||
               saved.name.starts_with("arctan");
      });
    EXPECT_GT(cases.size(), 1300U);
    expect_values_of(cases, run_onnxruntime(cases, folder_));
  }
}

/// The model is run under another name, in the folder of its weights.
TEST_F(OnnxruntimeTest, ReadsWeightsFromASecondFile) {
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kOnnxruntime << " is missing";
  manual_seed(9);
  const Tensor w = random_normal({128, 128}), b = random_normal({128}), x = random_normal({2, 128});
  const auto f = [](const Tensor& w, const Tensor& b, const Tensor& x) { return matmul(x, w) + b; };
  const std::string model = (folder_ / "weights.onnx").string();
  save_onnx(model, f, std::tuple{w, b, x},
            {.arguments = {"w", "b", "x"}, .parameters = {0, 1}, .max_file_bytes = 100});
  ASSERT_TRUE(std::filesystem::exists(model + ".data-1"));
  std::ifstream in(model, std::ios::binary);
  SavedCase saved;
  saved.name = "weights in a second file";
  saved.bytes.assign(std::istreambuf_iterator<char>(in), {});
  saved.inputs = {{"x", x}};
  saved.outputs = {{"y", f(w, b, x)}};
  saved.valid = {{"y", logical_not(zeros({2, 128}, boolean))}};
  expect_values_of({saved}, run_onnxruntime({saved}, folder_));
}

/// Models of other exporters go in, out and into onnxruntime.
TEST_F(OnnxruntimeTest, GivesTheValuesOfLoadedModelsThatAreSavedAgain) {
  if (!std::filesystem::exists(REEL_ONNX_DATA))
    GTEST_SKIP() << "SKIPPED: there is no " << REEL_ONNX_DATA << " (Debian: libonnx-testdata)";
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kOnnxruntime << " is missing";
  const std::vector<SavedCase> cases = data_cases(REEL_ONNX_DATA);
  for (const SavedCase& saved : cases) EXPECT_EQ(saved.failure, "") << saved.name;
  EXPECT_GT(cases.size(), 950U);
  expect_values_of(cases, run_onnxruntime(cases, folder_));
}

}  // namespace
}  // namespace reel
