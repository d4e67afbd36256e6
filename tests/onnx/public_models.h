// tests/onnx/public_models.h — models in packages of npm, which docs/onnx.md names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reel/reel.h"

namespace reel {

/// A model, and inputs for it.
struct PublicModel {
  std::string name;
  std::string package;  ///< with its version, as npm takes it
  std::string file;     ///< below node_modules
  std::map<std::string, Tensor> inputs;
  double tolerance = 1e-4;  ///< of outputs, to onnxruntime's
};

/// Installs the packages of npm into the working directory. Returns false without npm or network.
bool has_public_models();
std::vector<PublicModel> public_models();

}  // namespace reel
