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

  bool has_cond() const { return attrs_.cond && !attrs_.trips.is_reverse; }
  /// Returns the largest number of iterations, i64; empty if the condition alone ends the loop.
  Name limit();
  /// Returns the largest number of iterations, or -1 if the model does not tell it.
  std::int64_t known_limit() const;
  /// Makes the numbers of draws inputs with an axis for the values of this position.
  /// more: number of values beyond one for each iteration.
  void add_position(const Name& position, std::int64_t more = 0);
  /// Returns a mask of entries, outside of the loop, with false in padding.
  Name without_padding(Name mask);
  /// Returns a stack given the elements in the order of the iterations. A loop that runs backwards
  /// makes the last element first. Behind a loop that ended early, there are zeros.
  Name stacked(std::size_t stack, const Name& elements);

  /// Returns true if the result for a stack is one tensor, the elements joined along their first
  /// axis: they may differ in size.
  bool is_joined(std::size_t stack) const;
  /// Returns true if the elements of a stack, a list that is not joined, may differ in size.
  /// body: the writer of the body.
  bool is_uneven(std::size_t stack, const GraphWriter& body) const;
  /// Returns the type in ONNX of an element of a list. value: its type in the body. If it is a list
  /// itself, its elements are along a first axis of any size.
  static TensorType element_type(const TensorType& value);
  /// Throws NotExpressible if ONNX has no place for the values that iterations save.
  void check_expressible() const;

  GraphWriter& to_;
  ModelWriter& model_;
  const LoopAttrs& attrs_;
  LoopOperands<const ValueId> values_;
  LoopResults<const ValueId> results_;
  std::vector<TensorType> operand_types_;
  LoopOperands<TensorType> types_;  ///< of the operands

 private:
  Name with_sizes(const Name& stack, const TensorType& element);
};

}  // namespace reel::exported
