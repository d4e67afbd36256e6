// onnx/newer_fields.h — fields of ONNX's protobuf messages that older libraries of ONNX do not
// know.
#pragma once

#include <string>
#include <vector>

#include "reel/onnx/proto.h"

namespace reel::imported {

/// Returns the overload of a function that a node calls, or that a function is; "" if it has none.
std::string overload_of(const ::onnx::NodeProto& node);
std::string overload_of(const ::onnx::FunctionProto& function);

/// Returns the attributes of a function that have defaults. Throws OnnxError if they are damaged.
std::vector<::onnx::AttributeProto> defaults_of(const ::onnx::FunctionProto& function);

}  // namespace reel::imported
