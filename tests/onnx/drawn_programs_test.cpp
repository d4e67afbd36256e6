// Programs of the fuzzer go out and back: they are saved, loaded, and run by onnxruntime.
#include "reel/tests/onnx/onnxruntime.h"
#include "reel/tests/onnx/saved/drawn_cases.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

constexpr int kPrograms = 400;

const DrawnCases& drawn() {
  static const DrawnCases& cases = *new DrawnCases(drawn_cases(0, kPrograms));
  return cases;
}

/// Programs whose values differ as docs/onnx.md says: a ragged dim in a state without the dims that
/// its lengths run over.
bool differs_by_rule(const SavedCase& saved) { return saved.name == "program 193"; }

TEST(DrawnProgramsTest, MostAreSaved) {
  // The others have ops that ONNX cannot express.
  EXPECT_GE(drawn().cases.size(), static_cast<std::size_t>(kPrograms * 8 / 10));
  EXPECT_EQ(drawn().drawing, 0);
  for (const SavedCase& saved : drawn().cases) EXPECT_EQ(saved.failure, "") << saved.name;
}

TEST(DrawnProgramsTest, HaveTheirValuesWhenTheyAreLoaded) {
  for (const SavedCase& saved : drawn().cases) {
    if (!saved.failure.empty() || differs_by_rule(saved)) continue;
    try {
      // A Loop without an iteration does not tell the other sizes of its stacked values.
      expect_outputs(saved, load_onnx_bytes(saved.bytes)(saved.inputs), "loaded",
                     Sizes::any_if_empty);
    } catch (const std::exception& error) {
      ADD_FAILURE() << saved.name << ": " << error.what();
    }
  }
}

/// True for errors of onnxruntime 1.20.1 and 1.30.0 themselves: ops without an implementation for
/// empty tensors, reductions and selections that make one element of none, and a defect of the
/// optimiser.
bool is_defect_of_runtime(const std::string& error) {
  for (const char* const text :
       {"OrtValueTensorSlicer", "CanRemoveNodeAndMergeEdges", "ReduceMax", "ArgMax",
        "Can broadcast 0 by 0", "Input shape:{1}, requested shape:{0", "onnxruntime crashed"})
    if (error.find(text) != std::string::npos) return true;
  return false;
}

class DrawnProgramsInOnnxruntimeTest : public InOwnFolder {
 protected:
  DrawnProgramsInOnnxruntimeTest() : InOwnFolder("cases.txt") {}
};

TEST_F(DrawnProgramsInOnnxruntimeTest, HaveTheirValues) {
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kOnnxruntime << " is missing";
  const std::vector<SavedCase>& cases = drawn().cases;
  const std::vector<OnnxruntimeResult> results = run_onnxruntime(cases, folder_);
  std::size_t run = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].failure.empty() || differs_by_rule(cases[i])) continue;
    if (results[i].error.empty()) {
      expect_outputs(cases[i], results[i].outputs, "by onnxruntime", Sizes::any_if_none_expected);
      ++run;
    } else if (!is_defect_of_runtime(results[i].error)) {
      ADD_FAILURE() << cases[i].name << ": " << results[i].error;
    }
  }
  EXPECT_GE(run, cases.size() * 9 / 10);
}

}  // namespace
}  // namespace reel
