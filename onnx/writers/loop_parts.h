// onnx/writers/loop_parts.h — LoopParts, a record of the op loop as its writers see it.
#pragma once

#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {

/// The base of writers of loops: the loop's attributes, operands and results.
class LoopParts {
 protected:
  explicit LoopParts(const WriteCall& call)
      : to_(call.to),
        model_(call.to.model()),
        attrs_(call.attr<LoopAttrs>()),
        values_(operands_of(attrs_, call.to.graph().inputs_of(call.record))),
        results_(results_of(attrs_, call.to.graph().outputs_of(call.record))),
        operand_types_(call.to.graph().types_of(call.to.graph().inputs_of(call.record))),
        types_(operands_of(attrs_, operand_types_)) {}

  /// Returns the name of capture `index`; empty if ONNX has no such value.
  Name captured(int index) const {
    return to_.name_or_none(values_.captures[static_cast<std::size_t>(index)]);
  }

  /// Returns true if the result for a stack is one tensor, the elements joined along their first
  /// axis: they may differ in size.
  bool is_joined(std::size_t stack) const;
  /// Throws NotExpressible if ONNX has no place for the values that iterations save.
  /// body: the writer of the body.
  void check_expressible(const GraphWriter& body) const;

  GraphWriter& to_;
  ModelWriter& model_;
  const LoopAttrs& attrs_;
  LoopOperands<const ValueId> values_;
  LoopResults<const ValueId> results_;
  std::vector<TensorType> operand_types_;
  LoopOperands<TensorType> types_;  ///< of the operands
};

}  // namespace reel::exported
