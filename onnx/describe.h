// onnx/describe.h — OnnxDescription: what a model takes, returns, holds and computes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/onnx/model.h"

REEL_API_BEGIN
namespace reel {

/// A model in words and numbers.
struct OnnxDescription {
  /// A value and its type in ONNX's words, as the model declares it.
  struct Value {
    std::string name;  ///< as in the model; calls take and return values by it
    std::string type;  ///< float[batch,3], sequence of float[?], or empty if it is not declared
  };

  std::vector<Value> inputs;   ///< without those that have an initializer, in order
  std::vector<Value> outputs;  ///< in order
  /// The parameters' types by name. Elements of fewer bits are f32 in Reel.
  std::map<std::string, TensorType> parameters;
  /// Numbers of nodes by op, with the nodes of branches, bodies and called functions. Ops of other
  /// domains than ONNX's own begin with the domain: `ai.onnx.ml.Binarizer`. Constant nodes that are
  /// parameters do not count.
  std::map<std::string, std::int64_t> ops;
  std::map<std::string, std::int64_t> op_sets;  ///< versions by domain; ONNX's own is ai.onnx
  std::int64_t ir_version = 0;                  ///< of the file's format
  /// One line for each op, version of an op or type without a rule, with the names of the nodes.
  /// Empty for a model that load_onnx returned.
  std::vector<std::string> without_rule;

  /// Returns the number of elements of all parameters.
  std::int64_t parameter_count() const;
};

/// Returns the description of a loaded model. Throws ArgumentError for an empty one.
OnnxDescription describe(const OnnxModel& model);

/// Returns the description of a model in a file, which may have ops and types without a rule.
/// Throws as load_onnx does for others.
OnnxDescription describe_onnx(const std::string& path);

}  // namespace reel
REEL_API_END
