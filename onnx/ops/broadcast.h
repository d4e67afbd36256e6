// onnx/ops/broadcast.h — operands of element-wise ops, also as versions before 7 broadcast them.
#pragma once

#include "reel/onnx/call.h"

namespace reel::imported {

/// Returns the second operand of an element-wise op. Before version 7, it broadcasts only if an
/// attribute says so, and may begin at an axis of the first operand: it then gets axes of size 1
/// behind its own.
Tensor second_operand(const Call& call);

/// Returns the results of a binary function on the first two inputs, with the type of the first.
template <class Fn>
Values binary(const Call& call, Fn fn) {
  return {call.stored_like(0, fn(call.tensor(0), second_operand(call)))};
}

/// Returns the results of a function on the first input, with its type.
template <class Fn>
Values unary(const Call& call, Fn fn) {
  return {call.stored_like(0, fn(call.tensor(0)))};
}

}  // namespace reel::imported
