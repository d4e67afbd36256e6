// tests/onnx/onnxruntime.h — runs saved models with onnxruntime, in node.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {

/// The package of npm that the tests install into their folder.
inline constexpr const char* kOnnxruntime = "onnxruntime-node@1.30.0";

/// Returns true if node can load onnxruntime, after installing it if it is missing.
bool has_onnxruntime();

/// Outputs by name, or an error.
struct OnnxruntimeResult {
  std::map<std::string, Tensor> outputs;
  std::string error = {};
  bool optimiser_fails = false;  ///< the result is of a run without onnxruntime's optimiser
};

/// Runs all cases that were saved, in one process. Returns the results in their order; empty ones
/// for cases with a failure. folder: for the models and other files.
std::vector<OnnxruntimeResult> run_onnxruntime(const std::vector<SavedCase>& cases,
                                               const std::filesystem::path& folder);

}  // namespace reel
