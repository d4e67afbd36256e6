// core/ops/creation/creation.h — ops that create tensors from numbers, for passes that recognise
// them.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "reel/core/base/visibility.h"
#include "reel/core/op/op.h"

namespace reel {

/// Attributes of full_op. A float or boolean is in `number`, an integer in `integer`.
struct FullAttrs {
  TensorType type{DType::f32};
  double number = 0;
  std::int64_t integer = 0;
  template <class F>
  static void fields(F&& f) {
    f("type", &FullAttrs::type);
    f("number", &FullAttrs::number);
    f("integer", &FullAttrs::integer);
  }
};

/// An eager tensor with all its elements along one plain axis. Two are equal if their bits are.
struct Numbers {
  Tensor data;
  bool operator==(const Numbers& other) const;
};
std::size_t hash_of(const Numbers& numbers);
std::ostream& operator<<(std::ostream& out, const Numbers& numbers);

/// Attributes of constant_op: numbers that a traced function names. The graph holds them, in
/// contrast to an eager tensor, which would be a capture.
struct ConstantAttrs {
  Numbers numbers;
  TensorType type{f32};  ///< of the result; its dims may be symbols
  template <class F>
  static void fields(F&& f) {
    f("type", &ConstantAttrs::type);
    f("data", &ConstantAttrs::numbers);
  }
};

extern REEL_API const Op full_op;  ///< of a given type
extern const Op full_like_op;      ///< with the dims and dtype of an input
extern const Op constant_op;
extern const Op range_op;  ///< 0, 1, 2, ...
extern const Op one_hot_op;

}  // namespace reel
