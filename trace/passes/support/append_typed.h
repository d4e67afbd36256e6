// trace/passes/support/append_typed.h — append_typed, which appends a record whose types its op
// tells.
#pragma once

#include <span>
#include <vector>

#include "reel/core/graph/graph.h"

namespace reel {

/// Appends a record of new values, with the types that the op's rule gives for these inputs.
/// Returns the values.
inline std::vector<ValueId> append_typed(Graph& to, const Op& op, const AttrsRef& attrs,
                                         std::span<const ValueId> inputs) {
  const std::vector<TensorType> in = to.types_of(inputs);
  TypeList out;
  TypeArgs rule{op, attrs.get(), in, out};
  op.type(rule);
  std::vector<ValueId> made;
  for (const TensorType& type : out.span()) made.push_back(to.add_value(type));
  to.append(op, attrs, inputs, made);
  return made;
}

}  // namespace reel
