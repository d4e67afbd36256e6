// onnx/call.h — Call, one execution of a node, as the rules of ops see it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reel/onnx/program.h"
#include "reel/onnx/stored.h"

namespace reel::imported {

class Scope;

/// The inputs, attributes and graphs of a node that runs.
class Call {
 public:
  Call(const Node& node, Values inputs, const Scope& scope)
      : node_(node), inputs_(std::move(inputs)), scope_(scope) {}

  const Node& node() const { return node_; }
  const Scope& scope() const { return scope_; }
  std::int64_t version() const { return node_.version; }
  std::size_t input_count() const { return inputs_.size(); }
  std::size_t output_count() const { return node_.outputs.size(); }
  /// Returns true if the node names the output.
  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }

  /// Returns true if the node names the input. An optional without an element is named, too.
  bool has(std::size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  /// Returns an input. Throws ArgumentError if the node leaves it out.
  const Value& in(std::size_t i) const;
  const Values& inputs() const { return inputs_; }
  /// Returns an input that is a tensor. Throws ArgumentError for a sequence or a missing input.
  const Tensor& tensor(std::size_t i) const;
  ElementType type(std::size_t i) const { return in(i).type; }

  bool has_attribute(const std::string& name) const { return node_.attributes.count(name) > 0; }
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  bool flag(const std::string& name, bool otherwise) const { return integer(name, otherwise) != 0; }
  double number(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::vector<std::int64_t> integers(const std::string& name) const;
  std::vector<double> numbers(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;
  const Value& tensor_attribute(const std::string& name) const;
  const Graph& graph(const std::string& name) const;

  /// Returns the axis as a position in [0, rank). Throws ArgumentError if it is out of range.
  int axis_in(std::int64_t axis, int rank) const;
  /// Returns an attribute that is an axis of the first input.
  int axis(std::int64_t otherwise, const std::string& name = "axis") const {
    return axis_in(integer(name, otherwise), tensor(0).rank());
  }

  /// Returns true if a trace knows the elements of an input.
  bool is_known(std::size_t i) const;
  /// Returns the elements of an input that must be known: an op reads sizes or positions from it.
  /// Throws TraceError, which names the input, if only a run knows them.
  std::vector<std::int64_t> known_integers(std::size_t i) const;
  std::int64_t known_integer(std::size_t i) const;
  std::vector<double> known_numbers(std::size_t i) const;
  /// Returns the sizes that an input holds, known or not. Throws TraceError if it holds none.
  Dims known_sizes(std::size_t i) const;

  /// Returns a result of the type that an input has.
  Value like(std::size_t i, Tensor tensor) const { return Value::of(std::move(tensor), type(i)); }
  /// As `like`, with elements as the type stores them.
  Value stored_like(std::size_t i, const Tensor& tensor) const {
    return Value::of(stored_as(tensor, type(i)), type(i));
  }

  /// Throws ArgumentError: an attribute has a value that no rule supports.
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  const Attribute* find(const std::string& name, Attribute::Kind kind) const;

  const Node& node_;
  Values inputs_;
  const Scope& scope_;
};

}  // namespace reel::imported
