// Saved functions have their values when they are loaded: eagerly and traced. save_onnx itself
// runs ONNX's checker and its inference of types.
#include "reel/tests/check.h"
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

using Values = std::map<std::string, Tensor>;

/// Calls check for each case. Fails for a case that was not saved, or whose check throws.
template <class Check>
void for_each_case(const Check& check) {
  for (const SavedCase& saved : all_saved_cases()) {
    if (!saved.failure.empty()) {
      ADD_FAILURE() << saved.name << ": " << saved.failure;
      continue;
    }
    try {
      check(saved);
    } catch (const std::exception& error) {
      ADD_FAILURE() << saved.name << ": " << error.what();
    }
  }
}

TEST(SavedFunctionsTest, HaveTheirValuesWhenTheyAreLoaded) {
  for_each_case([](const SavedCase& saved) {
    expect_outputs(saved, load_onnx_bytes(saved.bytes)(saved.inputs), "loaded");
  });
}

TEST(SavedFunctionsTest, HaveTheirValuesInATrace) {
  for_each_case([](const SavedCase& saved) {
    const OnnxModel model = load_onnx_bytes(saved.bytes);
    const auto traced = jit([&](const Values& inputs) { return model(inputs); });
    expect_outputs(saved, traced(saved.inputs), "traced");
  });
}

TEST(SavedFunctionsTest, HaveTheirValuesWhenTheyAreSavedAgain) {
  for_each_case([](const SavedCase& saved) {
    const OnnxModel model = load_onnx_bytes(saved.bytes);
    const auto f = [&](const Values& inputs) { return model(inputs); };
    const OnnxModel again =
        load_onnx_bytes(onnx_bytes(f, std::tuple{saved.inputs}, {.arguments = {""}}));
    expect_outputs(saved, again(saved.inputs), "saved again");
  });
}

}  // namespace
}  // namespace reel
