// tests/onnx/model_text.h — makes models from text, in the syntax of ONNX's parser.
#pragma once

#include <string>

#include "reel/onnx.h"

namespace reel {

/// Returns the bytes of a model. text: a graph, as in
///   g (float[n] x) => (float[n] y) <float[2] w = {1, 2}> { y = Add(x, w) }
/// in op set `version`. seq(float[2]) is the type of a sequence of inputs and outputs. Throws
/// std::runtime_error for a text that the parser does not accept.
std::string model_bytes(const std::string& text, int version = 17);
/// Returns the model, loaded.
OnnxModel model_of(const std::string& text, int version = 17);

}  // namespace reel
