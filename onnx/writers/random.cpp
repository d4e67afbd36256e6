// Writers of random ops. Keys have no counterpart in ONNX: its nodes draw on their own, or the
// numbers are inputs of the model.
#include "reel/core/ops/creation/draws.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

Names write_fold_key(const WriteCall&) { return {""}; }

/// Adds an input of the model for the numbers of one draw.
Names as_input(const WriteCall& call) {
  GraphWriter& to = call.to;
  if (!to.is_main())
    throw NotExpressible{"a draw in a loop or branch cannot be an input of the model"};
  const Name name = to.model().unique("draw");
  to.model().drawn.push_back({name, call.type_out()});
  return {name};
}

/// Adds a node that draws numbers like a tensor of the result's sizes.
Names as_node(const WriteCall& call, const std::string& op, const Attributes& attributes) {
  GraphWriter& to = call.to;
  const TensorType& type = call.type_out();
  const Name like = type.rank() ? to.expand(to.model().number(0, type.dtype()), type.dims())
                                : to.model().number(0, type.dtype());
  return {to.add(op, {like}, attributes)};
}

bool draws_inputs(const WriteCall& call) {
  return call.to.model().options().draws == OnnxDraws::inputs;
}

Names write_uniform(const WriteCall& call) {
  if (draws_inputs(call)) return as_input(call);
  const DrawAttrs& attrs = call.attr<DrawAttrs>();
  return as_node(call, "RandomUniformLike",
                 {{"low", number(attrs.low)}, {"high", number(attrs.high)}});
}
Names write_normal(const WriteCall& call) {
  return draws_inputs(call) ? as_input(call) : as_node(call, "RandomNormalLike", {});
}
Names write_truncated(const WriteCall& call) {
  if (draws_inputs(call)) return as_input(call);
  throw NotExpressible{"ONNX has no such distribution; OnnxDraws::inputs makes the draw an input"};
}

const Writer kWriters[] = {
    {"fold_key", write_fold_key},
    {"random_uniform", write_uniform},
    {"random_normal", write_normal},
    {"truncated_normal", write_truncated},
};

}  // namespace

std::span<const Writer> random_writers() { return kWriters; }

}  // namespace reel::exported
