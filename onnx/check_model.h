// onnx/check_model.h — the rules of ONNX that a model must keep before any op of it runs.
#pragma once

#include "reel/onnx/proto.h"

namespace reel::imported {

/// Throws OnnxError that names the place and the rule if a model breaks a rule of ONNX: names are
/// defined once and before use, also in graphs of nodes and in functions; nodes have inputs,
/// outputs and attributes as the op's form in their version has them; a tensor has its elements in
/// one field; op sets are known. Ops of unknown domains are not checked.
void check_model(const ::onnx::ModelProto& model);

/// Returns true if the library of ONNX that is linked knows the IR version and all op sets of the
/// model, so that its own checker can judge it.
bool is_known_to_library(const ::onnx::ModelProto& model);
/// Throws std::exception if the checker of the library of ONNX refuses the model. path: of the
/// model's file if tensors lie in other files, else "".
void check_by_library(const ::onnx::ModelProto& model, const std::string& path);

/// Returns the name of a domain as rules have it: "" for ONNX itself.
inline std::string domain_of(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

}  // namespace reel::imported
