// onnx/write_model.h — turns a Program into the bytes of a file.
#pragma once

#include <string>

#include "reel/onnx/external_data.h"
#include "reel/onnx/program.h"

namespace reel::exported {

/// Returns a model of an op set. Reel's checks of models accept it; so do ONNX's checker and its
/// inference of types and shapes, in strict mode, if the library of ONNX knows the op set.
///
/// Throws InternalError if one does not; OnnxError for a model of 2 GiB or more, which protobuf
/// cannot hold.
///
/// data: gets the large initializers, unless it is null.
std::string bytes_of_model(const imported::Graph& graph, std::int64_t op_set, ExternalData* data);

}  // namespace reel::exported
