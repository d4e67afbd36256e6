// Writers of random ops. Keys have no counterpart in ONNX: its nodes draw on their own, or the
// numbers are inputs of the model.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/ops/creation/draws.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

bool draws_inputs(const WriteCall& call) {
  return call.to.model().options().draws == OnnxDraws::inputs;
}

/// Returns the key that a draw or fold_key reads. Outside of loops, any key has a place of its own.
DrawKey key_of(const WriteCall& call) {
  const DrawKey* const known = call.to.model().find_key(call.to.name_or_none(call.value_in(0)));
  if (known) return *known;
  if (!call.to.is_main())
    throw NotExpressible{"the key of the draw is computed in a loop or branch"};
  return {str("key ", call.value_in(0)), {}};
}

/// A key becomes a name that no node has. It tells the place of the key in the program.
Names write_fold_key(const WriteCall& call) {
  if (!draws_inputs(call)) return {""};
  ModelWriter& model = call.to.model();
  DrawKey key = key_of(call);
  const Name& number = call.in(1);
  if (const auto known = model.known_integer(number)) {
    key.place += str('/', *known);
  } else if (model.find_position(number)) {
    key.place += "/i";
    key.positions.push_back(number);
  } else {
    throw NotExpressible{"folds in a number that is no iteration of a loop"};
  }
  return {model.add_key(std::move(key))};
}

/// Returns the numbers of a draw, from an input of the model. Draws of one place are one draw, such
/// as those that a gradient computes again.
Names as_input(const WriteCall& call) {
  GraphWriter& to = call.to;
  ModelWriter& model = to.model();
  const DrawKey key = key_of(call);
  const std::string place = str(key.place, '#', call.attr<DrawAttrs>().number);
  auto input = std::find_if(model.drawn.begin(), model.drawn.end(),
                            [&](const DrawnInput& drawn) { return drawn.place == place; });
  if (input == model.drawn.end()) {
    DrawnInput made{place, to.declared_input(model.unique("draw"), call.type_out())};
    std::vector<imported::Declared::Size> counts;
    for (const Name& position : key.positions)
      counts.push_back(model.find_position(position)->count);
    made.input.shape->insert(made.input.shape->begin(), counts.begin(), counts.end());
    input = model.drawn.insert(input, std::move(made));
  }
  Name numbers = input->input.name;
  for (const Name& position : key.positions)
    numbers = to.add("Gather", {numbers, position}, {{"axis", integer(0)}});
  return {numbers};
}

/// Adds a node that draws numbers like a tensor of the result's sizes.
Names as_node(const WriteCall& call, const std::string& op, const Attributes& attributes) {
  GraphWriter& to = call.to;
  const TensorType& type = call.type_out();
  const Name like = type.rank() ? to.expand(to.model().number(0, type.dtype()), type.dims())
                                : to.model().number(0, type.dtype());
  return {to.add(op, {like}, attributes)};
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
