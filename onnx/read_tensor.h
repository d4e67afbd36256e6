// onnx/read_tensor.h — reads tensors of a model, also from files beside it.
#pragma once

#include <cstdint>
#include <string>

#include "reel/onnx/proto.h"
#include "reel/onnx/value.h"

namespace reel::imported {

/// Where a model is: tensors may lie in other files of its folder.
struct ModelFile {
  std::string path;    ///< for messages
  std::string folder;  ///< empty for a model in memory, which has no other files
};

/// Returns the tensor with its elements; constant.
///
/// Throws OnnxError if the number of elements does not match the sizes, if the type is not
/// supported, or if a file is not below the model's folder; IoError if it cannot be read. The sizes
/// are compared with the bytes that are there before memory is taken.
Value read_tensor(const ::onnx::TensorProto& tensor, const ModelFile& file);

}  // namespace reel::imported
