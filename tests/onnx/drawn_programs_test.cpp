// Programs of the fuzzer go out and back: they are saved, loaded, and run by onnxruntime.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "reel/core/base/str.h"
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

TEST(DrawnProgramsTest, AsManyAreSavedAsThePageSays) {
  // The others have ops that ONNX cannot express.
  std::ifstream file(REEL_SOURCE_FOLDER "/docs/onnx.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t count = drawn().cases.size();
  for (const std::string& sentence :
       {str(kPrograms, " programs that the fuzzer draws, half of them with gradients: ", count,
            " can be expressed in ONNX"),
        str("of the fuzzer's ", count, " saved programs")})
    EXPECT_NE(page.find(sentence), std::string::npos) << "docs/onnx.md lacks: " << sentence;
  EXPECT_EQ(drawn().drawing, 0);
  for (const SavedCase& saved : drawn().cases) EXPECT_EQ(saved.failure, "") << saved.name;
}

/// docs/onnx.md lists these reasons. Other ops of such a program may lack a value of the refused
/// op.
TEST(DrawnProgramsTest, AreRefusedForReasonsOfThePage) {
  constexpr const char* kReasons[] = {"a TensorArray with elements of different sizes",
                                      "an array that cannot grow is replaced by another one",
                                      "no value shows the lengths of the dim"};
  for (const std::string& error : drawn().errors)
    EXPECT_TRUE(std::any_of(std::begin(kReasons), std::end(kReasons), [&](const char* reason) {
      return error.find(reason) != std::string::npos;
    })) << error;
}

TEST(DrawnProgramsTest, HaveTheirValuesWhenTheyAreLoaded) {
  for (const SavedCase& saved : drawn().cases) {
    if (!saved.failure.empty()) continue;
    try {
      expect_outputs(saved, load_onnx_bytes(saved.bytes)(saved.inputs), "loaded");
    } catch (const std::exception& error) {
      ADD_FAILURE() << saved.name << ": " << error.what();
    }
  }
}

TEST(DrawnProgramsTest, HaveTheirValuesInATrace) {
  using Values = std::map<std::string, Tensor>;
  int refused = 0;  // for instance two sizes of one tensor that only a run knows
  for (const SavedCase& saved : drawn().cases) {
    if (!saved.failure.empty()) continue;
    try {
      const OnnxModel model = load_onnx_bytes(saved.bytes);
      const auto traced = jit([&](const Values& inputs) { return model(inputs); });
      expect_outputs(saved, traced(saved.inputs), "traced");
    } catch (const TraceError&) {
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << saved.name << ": " << error.what();
    }
  }
  EXPECT_LE(refused, kPrograms / 50);
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
  // The optimiser fails on branches of branches that read captured values (docs/onnx.md).
  EXPECT_LE(std::ranges::count(results, true, &OnnxruntimeResult::optimiser_fails),
            kPrograms / 100);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].failure.empty()) continue;
    if (results[i].error.empty())
      expect_outputs(cases[i], results[i].outputs, "by onnxruntime");
    else
      ADD_FAILURE() << cases[i].name << ": " << results[i].error;
  }
}

}  // namespace
}  // namespace reel
