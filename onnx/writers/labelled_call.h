// onnx/writers/labelled_call.h — LabelledCall, the operands of a function that is one op in ONNX,
// by their roles.
#pragma once

#include "reel/core/ops/control/checkpointed.h"
#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// A record of checkpointed_op. frontend/loops/whole_function.h lists the roles.
class LabelledCall {
 public:
  /// Both must outlive this object.
  LabelledCall(const Graph& graph, const OpRecord& record)
      : graph_(graph), record_(record), label_(get<CheckpointedAttrs>(record.attrs.get()).label) {}

  const FunctionLabel& label() const { return label_; }
  const Dim& dim(std::size_t role) const { return label_.dims[role]; }
  double number(std::size_t role) const { return label_.numbers[role]; }
  /// Returns the type of an operand; null if it is not given.
  const TensorType* type(std::size_t role) const {
    return label_.operands[role] < 0 ? nullptr : &graph_.types[value(role)];
  }
  Name name(GraphWriter& to, std::size_t role) const { return to.name(value(role)); }

  /// Returns true if operand 0 and all other floating operands are f32, and no size is known to
  /// be 0: onnxruntime has the nodes for f32 alone, and fails on empty tensors.
  bool is_plain_f32() const {
    const auto is_plain = [](const TensorType& type) {
      return type.dtype() != f64 && !is_known_empty(type);
    };
    if (!type(0) || !type(1)) return false;
    for (std::size_t role = 0; role < label_.operands.size(); ++role)
      if (type(role) && !is_plain(*type(role))) return false;
    return true;
  }

 private:
  ValueId value(std::size_t role) const {
    return graph_.inputs_of(record_)[static_cast<std::size_t>(label_.operands[role])];
  }

  const Graph& graph_;
  const OpRecord& record_;
  const FunctionLabel& label_;
};

}  // namespace reel::exported
