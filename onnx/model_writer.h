// onnx/model_writer.h — ModelWriter, the parts of a model being written that all its graphs share:
// names, constants, and the list of ops that ONNX cannot express.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/onnx/program.h"
#include "reel/onnx/save_options.h"

namespace reel::exported {

using imported::Attribute;
using imported::Node;
using Attributes = std::map<std::string, Attribute>;

/// The name of a value in an ONNX graph. Empty for a value that ONNX does not need, such as the
/// token of a dim.
using Name = std::string;
using Names = std::vector<Name>;

Attribute integer(std::int64_t value);
Attribute integers(std::vector<std::int64_t> values);
Attribute integers(const std::vector<int>& values);
Attribute number(double value);
Attribute text(std::string value);
Attribute texts(std::vector<std::string> values);
Attribute graph(std::shared_ptr<const imported::Graph> value);

/// Thrown by a writer: ONNX cannot express this application of the op.
struct NotExpressible {
  std::string reason;
};

/// The number of a loop's iteration, where a body or condition reads it.
struct LoopPosition {
  imported::Declared::Size count;  ///< of the iterations, or of the evaluations of a condition
};
/// A key of random numbers. Only its place in the program is known: ONNX has no keys.
struct DrawKey {
  std::string place;  ///< the numbers that it folds in; equal for equal keys
  Names positions;    ///< of the loops around the draw, the outermost loop first
};
/// An input of the model for random numbers that are drawn outside it.
struct DrawnInput {
  std::string place;         ///< of its key and draw
  imported::Declared input;  ///< its first axes are the iterations of loops
};

class ModelWriter {
 public:
  explicit ModelWriter(const SaveOnnxOptions& options) : options_(options) {}
  const SaveOnnxOptions& options() const { return options_; }

  /// Returns a name that no other value has: `wanted`, or `wanted` with a number.
  Name unique(const std::string& wanted);
  /// Returns the name of a symbolic size, for the declared shapes of inputs and outputs.
  std::string size_name(const Dim& dim);
  /// Returns a name that no other symbolic size has: `wanted`, or `wanted` with a number.
  std::string unique_size_name(const std::string& wanted);

  /// Return the name of a constant. Equal constants have one name.
  Name constant(const Tensor& value);
  Name integers(const std::vector<std::int64_t>& values);  ///< i64, a vector
  Name integer(std::int64_t value, DType dtype = i64);     ///< a scalar
  Name number(double value, DType dtype);                  ///< a scalar
  /// Return the value of a constant that is an integer or boolean scalar, or nothing for others.
  std::optional<std::int64_t> known_integer(const Name& name) const;
  std::optional<bool> known_boolean(const Name& name) const;
  /// Returns the nodes of all constants. They precede the nodes of the main graph.
  const std::vector<Node>& constants() const { return constants_; }

  /// Adds an op to the list of ops that ONNX cannot express.
  void refuse(const OpRecord& record, const std::string& reason);
  /// Throws OnnxError with all refused ops and their lines, if there are any.
  void check() const;

  /// Returns a new name that stands for a key. No node has it.
  Name add_key(DrawKey key);
  /// Return the key, or the position of a loop, that a name stands for; null for other names.
  const DrawKey* find_key(const Name& name) const;
  const LoopPosition* find_position(const Name& name) const;
  void add_position(const Name& name, LoopPosition position);

  /// Lists that never grow: writes need no room behind their elements.
  std::set<Name> fixed_lists;
  /// The sizes of a list's elements, i64[n, rank], by the name of a list whose elements may differ
  /// in size.
  std::map<Name, Name> element_sizes;
  /// The lengths of elements that a loop has joined, i64[n], by the name of the joined elements.
  std::map<Name, Name> joined_lengths;
  std::vector<DrawnInput> drawn;  ///< inputs for random numbers (OnnxDraws::inputs)

 private:
  std::optional<Tensor> known_scalar(const Name& name) const;

  const SaveOnnxOptions& options_;
  std::set<std::string> names_;
  std::unordered_map<std::string, int> counts_;
  std::map<std::string, Name> known_constants_;  ///< by type and bytes
  std::vector<Node> constants_;
  std::unordered_map<const DimNode*, std::string> size_names_;
  std::set<std::string> size_names_taken_;
  std::vector<std::string> refused_;
  std::unordered_map<Name, DrawKey> keys_;
  std::unordered_map<Name, LoopPosition> positions_;
};

}  // namespace reel::exported
