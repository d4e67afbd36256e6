// Saved functions have their values when onnxruntime runs them. Needs node and npm, and the package
// onnxruntime-node, which is installed into the build folder.
#include "reel/tests/onnx/onnxruntime.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class OnnxruntimeTest : public InOwnFolder {
 protected:
  OnnxruntimeTest() : InOwnFolder("cases.txt") {}
};

TEST_F(OnnxruntimeTest, GivesTheValuesOfSavedFunctions) {
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kOnnxruntime << " is missing";
  const std::vector<SavedCase>& cases = all_saved_cases();
  const std::vector<OnnxruntimeResult> results = run_onnxruntime(cases, folder_);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].failure.empty()) continue;  // SavedFunctionsTest reports it
    EXPECT_FALSE(results[i].optimiser_crashes) << cases[i].name;
    if (results[i].error.empty())
      expect_outputs(cases[i], results[i].outputs, "by onnxruntime");
    else
      ADD_FAILURE() << cases[i].name << ": " << results[i].error;
  }
}

}  // namespace
}  // namespace reel
