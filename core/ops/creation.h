// core/ops/creation.h — ops that make tensors of one number, for passes that ask.
#pragma once

#include "reel/core/op.h"

namespace reel {

/// Of full_op: the number is in the field of its kind.
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

extern const Op full_op;       ///< of a given type
extern const Op full_like_op;  ///< with the dims and dtype of an input

/// Whether an op of these gives nothing but zeros.
bool makes_zeros(const Op& op, const Attrs* attrs);

}  // namespace reel
