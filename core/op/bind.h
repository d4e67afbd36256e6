// core/op/bind.h — bind and bind_all, the only way by which ops are applied in eager mode, traces
// and tapes.
#pragma once

#include <initializer_list>

#include "reel/core/base/visibility.h"
#include "reel/core/op/op.h"

REEL_API_BEGIN
namespace reel {

/// Applies an op with one output in the active context: computes it or records it in the active
/// trace, and records it on the active tapes. Throws as the op's type rule and kernel do, and
/// StructureError if an operand is the value of a TensorArray and the op takes a tensor there.
Tensor bind(const Op& op, OpInputs inputs, AttrsRef attrs = {});
inline Tensor bind(const Op& op, std::initializer_list<OpInput> inputs, AttrsRef attrs = {}) {
  return bind(op, OpInputs(inputs.begin(), inputs.size()), std::move(attrs));
}
Tensor bind(const Op& op, const Tensors& inputs, AttrsRef attrs = {});

/// Applies an op with any number of outputs.
Tensors bind_all(const Op& op, OpInputs inputs, AttrsRef attrs = {});
inline Tensors bind_all(const Op& op, std::initializer_list<OpInput> inputs, AttrsRef attrs = {}) {
  return bind_all(op, OpInputs(inputs.begin(), inputs.size()), std::move(attrs));
}
Tensors bind_all(const Op& op, const Tensors& inputs, AttrsRef attrs = {});

}  // namespace reel
REEL_API_END
