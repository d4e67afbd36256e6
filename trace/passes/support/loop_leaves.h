// trace/passes/support/loop_leaves.h — reads and changes single leaves of a loop in a pass.
#pragma once

#include <cstddef>
#include <vector>

#include "reel/core/ops/loop/loop_views.h"

namespace reel {

/// Returns the operand that the body reads as its capture `index`. operands: of the op.
inline ValueId body_capture(const LoopAttrs& attrs, const std::vector<ValueId>& operands,
                            std::size_t index) {
  return operands_of(attrs, operands)
      .captures[static_cast<std::size_t>(attrs.body_captures[index])];
}

/// Removes an element, such as one that a view of loop_views.h shows. Returns it.
inline ValueId take(std::vector<ValueId>& values, const ValueId& element) {
  const ValueId result = element;
  values.erase(values.begin() + (&element - values.data()));
  return result;
}

/// Adds a capture to the loop and to its body. operands: of the op, to which `operand` is added.
/// formal: the body's new input.
inline void add_body_capture(LoopAttrs& attrs, std::vector<ValueId>& operands, ValueId operand,
                             Graph& body, ValueId formal, LoopCapture capture = {}) {
  attrs.body_captures.push_back(static_cast<int>(attrs.captures.size()));
  attrs.captures.push_back(capture);
  operands.push_back(operand);
  body.inputs.push_back(formal);
}

}  // namespace reel
