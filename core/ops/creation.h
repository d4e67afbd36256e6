// core/ops/creation.h — ops that make tensors of numbers, for passes that ask.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <ostream>

#include "reel/core/op.h"

namespace reel {

/// A number by its bits: zeros of either sign are two, and NaN equals itself.
struct ExactNumber {
  double value = 0;
  ExactNumber(double number = 0) : value(number) {}
  bool operator==(const ExactNumber& other) const {
    return std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value);
  }
};
inline std::size_t hash_of(const ExactNumber& number) {
  return std::hash<std::uint64_t>{}(std::bit_cast<std::uint64_t>(number.value));
}
inline std::ostream& operator<<(std::ostream& out, const ExactNumber& number) {
  return out << number.value;
}

/// Of full_op: the number is in the field of its kind.
struct FullAttrs {
  TensorType type{DType::f32};
  ExactNumber number = 0;
  std::int64_t integer = 0;
  template <class F>
  static void fields(F&& f) {
    f("type", &FullAttrs::type);
    f("number", &FullAttrs::number);
    f("integer", &FullAttrs::integer);
  }
};

/// Of constant_op: numbers that a traced function names, recorded with the graph where an eager
/// tensor would be a capture.
struct ConstantAttrs {
  Tensor data;           ///< eager, all elements along one plain axis
  TensorType type{f32};  ///< of the result; its dims may be symbols
  template <class F>
  static void fields(F&& f) {
    f("type", &ConstantAttrs::type);
    f("data", &ConstantAttrs::data);
  }
};

extern const Op full_op;       ///< of a given type
extern const Op full_like_op;  ///< with the dims and dtype of an input
extern const Op constant_op;
extern const Op range_op;  ///< 0, 1, 2, ...

/// Whether an op of these gives nothing but zeros.
bool makes_zeros(const Op& op, const Attrs* attrs);

}  // namespace reel
