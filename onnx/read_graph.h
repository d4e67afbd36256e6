// onnx/read_graph.h — turns protobuf graphs into Program.
#pragma once

#include <map>
#include <string>

#include "reel/onnx/program.h"
#include "reel/onnx/read_tensor.h"

namespace reel::imported {

/// The model read, and its parameters by name.
struct ReadModel {
  Program program;
  std::map<std::string, Tensor> parameters;
};

/// Returns the model as the interpreter runs it. Calls of the model's functions have the function's
/// graph. Throws OnnxError if functions call themselves, or if the model has more nodes or axes
/// than the options allow.
ReadModel read_model(const ::onnx::ModelProto& model, const ModelFile& file,
                     const LoadOnnxOptions& options);

}  // namespace reel::imported
