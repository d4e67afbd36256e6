// onnx/check_support.h — finds everything in a model that Reel has no rule for.
#pragma once

#include "reel/onnx/program.h"
#include "reel/onnx/proto.h"

namespace reel::imported {

/// Returns a line for each op, version of an op and type without a rule, with the names of the
/// nodes. A type is listed where the model states it. model: the program as protobuf.
std::vector<std::string> find_unsupported(const Program& program, const ::onnx::ModelProto& model);
/// Throws one OnnxError that lists all of them.
void check_support(const Program& program, const ::onnx::ModelProto& model);

}  // namespace reel::imported
