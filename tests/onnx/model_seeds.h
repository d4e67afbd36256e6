// tests/onnx/model_seeds.h — models of ONNX's test data that hold their own inputs, to be damaged.
#pragma once

#include <string>
#include <vector>

namespace reel {

/// Returns the small models below a folder of ONNX's test data, sorted. Their inputs are
/// initializers with the values of their first run, so that a damage reaches these values too, and
/// a model runs without inputs. Inputs that are no tensors stay inputs.
std::vector<std::string> model_seeds(const std::string& data);

}  // namespace reel
