// onnx/write_model.h — turns a Program into the bytes of a file.
#pragma once

#include <string>

#include "reel/onnx/program.h"

namespace reel::exported {

inline constexpr int kOpSet = 17, kIrVersion = 8;

/// Returns a model of op set 17 and IR version 8. ONNX's checker and its inference of types and
/// shapes, in strict mode, accept the model.
///
/// Throws InternalError if they do not; OnnxError for a model of 2 GiB or more, which protobuf
/// cannot hold.
std::string bytes_of_model(const imported::Graph& graph);

}  // namespace reel::exported
