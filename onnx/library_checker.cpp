// The checker of the library of ONNX that is linked.
#include <limits>

#include "reel/onnx/check_model.h"
// These need the macros that proto.h defines.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#pragma GCC diagnostic pop

namespace reel::imported {
namespace {

/// Domains that the library does not know are left to it: it passes over their nodes.
template <class Imports>
bool are_known(const Imports& imports) {
  const auto& known = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  for (const auto& import : imports) {
    if (import.domain() == "ai.onnx") return false;  // the library takes it for another domain
    const auto found = known.find(import.domain());
    if (found != known.end() && import.version() > found->second.second) return false;
  }
  return true;
}

}  // namespace

bool is_known_to_library(const ::onnx::ModelProto& model) {
  if (model.ir_version() > ::onnx::Version::IR_VERSION || !are_known(model.opset_import()))
    return false;
  for (const auto& function : model.functions())
    if (!are_known(function.opset_import())) return false;
  return true;
}

void check_by_library(const ::onnx::ModelProto& model, const std::string& path) {
  // The checker finds other files only if it gets the model's path; it then parses the model again.
  if (path.empty())
    ::onnx::checker::check_model(model);
  else
    ::onnx::checker::check_model(path);
}

}  // namespace reel::imported
