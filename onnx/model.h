// onnx/model.h — OnnxModel and load_onnx: models in the format of ONNX as functions on tensors.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"
#include "reel/onnx/load_options.h"
#include "reel/onnx/onnx_error.h"

REEL_API_BEGIN
namespace reel {

namespace imported {
struct Program;
}

/// An input or output of a model that need not be a tensor: a tensor, a sequence of tensors, or
/// neither, for an optional without an element. A tree.
struct OnnxValue {
  std::optional<Tensor> tensor;                 ///< present if the value is a tensor
  std::optional<std::vector<Tensor>> sequence;  ///< present if the value is a sequence
};

/// A function on tensors with parameters, read from an ONNX model.
///
/// The parameters are the floating-point initializers and Constant nodes with more than one
/// element, in branches, bodies of loops and functions too. They are the leaves of the model as a
/// tree: grad, jit, vmap, optimisers and checkpoints work on it as on any struct of tensors. Other
/// tensors are constants of the function: single numbers, integers, sizes and scales such as those
/// of Resize. Copies share the function and the tensors. Const members are thread-safe.
class OnnxModel {
 public:
  /// An empty model, to be assigned to. Calling it throws ArgumentError.
  OnnxModel() = default;

  /// Returns the outputs by name, for the inputs by name.
  ///
  /// An input may be left out if an initializer has its name. Named dims become plain; a size
  /// that a trace does not know stays unknown, so that one trace serves any size. Works in eager
  /// mode, in traces and on tapes. Tensors with sizes as elements, such as the shape of Reshape,
  /// must be known while tracing: constants, computed from sizes, or captured by the traced
  /// function. Throws ArgumentError for a missing or unknown input, and if an output is no tensor;
  /// DTypeError or ShapeError if an input differs from its declaration; OnnxError if its values
  /// take more than LoadOnnxOptions allow; the errors of the ops, with the names of the nodes.
  std::map<std::string, Tensor> operator()(const std::map<std::string, Tensor>& inputs) const;

  /// As operator(), for models with sequences or optionals as inputs or outputs.
  std::map<std::string, OnnxValue> run(const std::map<std::string, OnnxValue>& inputs) const;

  /// Return the names of the inputs that have no initializer, and of the outputs, in order.
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;

  /// By the names of the values in the model. If several values have one name, values in inner
  /// graphs get the names of the nodes and branches around them in front: `if/then_branch/w`.
  std::map<std::string, Tensor> parameters;

  // Below: for the library itself.
  auto members() { return std::tie(parameters); }
  static constexpr std::array<std::string_view, 1> member_names() { return {""}; }
  static OnnxModel of(std::shared_ptr<const imported::Program> program,
                      std::map<std::string, Tensor> parameters);
  const std::shared_ptr<const imported::Program>& program() const { return program_; }

 private:
  std::shared_ptr<const imported::Program> program_;
};

/// Reads a model from a file, and checks it. Tensors may lie in other files below the model's
/// folder.
///
/// Throws IoError if a file cannot be read. Throws OnnxError if the model is damaged or breaks a
/// rule of ONNX; if it has ops, versions of ops or types without a rule, one error lists all of
/// them with the names of the nodes. Floats of fewer bits become f32, integers of fewer bits i32 or
/// i64. Tensors of float8 and float4 are constants, not parameters. If save_onnx wrote the model,
/// its initializers of any size are the parameters, but not its Constant nodes. options: limits of
/// the model and of its calls.
OnnxModel load_onnx(const std::string& path, const LoadOnnxOptions& options = {});
/// Reads a model from the bytes of a file. All tensors must be in it.
OnnxModel load_onnx_bytes(std::string_view bytes, const LoadOnnxOptions& options = {});

}  // namespace reel
REEL_API_END
