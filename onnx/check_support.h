// onnx/check_support.h — finds everything in a model that Reel has no rule for.
#pragma once

#include "reel/onnx/program.h"
#include "reel/onnx/proto.h"

namespace reel::imported {

/// Throws one OnnxError that lists all ops, versions of ops and types without a rule, with the
/// names of their nodes. A type is listed where the model states it. model: the program as
/// protobuf.
void check_support(const Program& program, const ::onnx::ModelProto& model);

}  // namespace reel::imported
