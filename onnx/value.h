// onnx/value.h — Value, the result of a node while a model runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/frontend/tree/tensor_array.h"
#include "reel/onnx/element_type.h"

namespace reel::imported {

/// A tensor, a sequence of tensors, or an optional without an element.
struct Value {
  enum class Kind { absent, tensor, sequence, array };

  Kind kind = Kind::absent;
  ElementType type = ElementType::undefined;  ///< of the tensor, or of the elements
  Tensor tensor;
  /// True if the tensor follows from the model alone, or from sizes that a trace knows. Its
  /// elements can be read while tracing, and no gradient flows through it.
  bool is_constant = false;
  /// The sizes in a vector of integers, or in one integer, in a trace that does not know all of
  /// them. A number computed from sizes is a computed_size() (ops/sizes.h).
  std::optional<Dims> sizes;
  std::vector<Value> elements;  ///< of a sequence with a known length
  TensorArray array;            ///< a sequence in a traced loop: its length is known to runs only

  static Value of(Tensor tensor, ElementType type);
  static Value of(Tensor tensor) {
    const ElementType type = element_type_of(tensor.dtype());
    return of(std::move(tensor), type);
  }
  static Value constant(Tensor tensor, ElementType type);
  /// Return constants, also while tracing.
  static Value integers(const std::vector<std::int64_t>& numbers);
  static Value integer(std::int64_t number);
  static Value truth(bool is_true);
  static Value sequence(std::vector<Value> elements, ElementType type);
  static Value sequence(TensorArray array, ElementType type);

  bool is_present() const { return kind != Kind::absent; }
  bool is_sequence() const { return kind == Kind::sequence || kind == Kind::array; }
};
using Values = std::vector<Value>;

/// Returns a text for messages: f32[2,3], a sequence of 3 tensors.
std::string describe(const Value& value);

}  // namespace reel::imported
