// Sequences of tensors, and optionals.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/ops/loop_state.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_graph.h"

namespace reel::imported {
namespace {

const Value& sequence(const Call& call, std::size_t i) {
  const Value& value = call.in(i);
  if (!value.is_sequence())
    call.refuse(str("input ", i, " is ", describe(value), ", not a sequence"));
  return value;
}

Values run_construct(const Call& call) { return {Value::sequence(call.inputs(), call.type(0))}; }
Values run_empty(const Call& call) {
  const auto type = static_cast<ElementType>(call.integer("dtype", 1));
  return {Value::sequence(std::vector<Value>(), type)};
}
Values run_length(const Call& call) {
  const Value& value = sequence(call, 0);
  if (value.kind == Value::Kind::array) return {Value::of(cast(value.array.size(), i64))};
  return {Value::integer(static_cast<std::int64_t>(value.elements.size()))};
}

/// Returns a position in [0, size), or up to `size` for an end.
std::size_t position_in(const Call& call, std::size_t i, std::size_t size, bool may_be_end) {
  const std::int64_t given = call.known_integer(i), count = static_cast<std::int64_t>(size);
  const std::int64_t at = given < 0 ? given + count : given;
  if (at < 0 || at >= count + may_be_end)
    throw IndexError(
        str(call.node().op, ": position ", given, " in a sequence of ", size, " tensors"));
  return static_cast<std::size_t>(at);
}

/// A position that only a run knows selects among tensors of one type.
Values run_at(const Call& call) {
  const Value& value = sequence(call, 0);
  if (value.kind == Value::Kind::array)
    return {Value::of(value.array.read(scalar_of(call.tensor(1))), value.type)};
  if (call.is_known(1)) return {value.elements[position_in(call, 1, value.elements.size(), false)]};
  Tensors tensors;
  for (const Value& element : value.elements) tensors.push_back(element.tensor);
  return {Value::of(gather(stack(tensors), scalar_of(call.tensor(1)), 0), value.type)};
}

Values run_insert(const Call& call) {
  Value value = sequence(call, 0);
  if (value.kind == Value::Kind::array) {
    if (call.has(2)) call.refuse("in a traced loop, elements are inserted at the end only");
    if (call.tensor(1).rank() != value.array.element_type().rank())
      throw TraceError(str("SequenceInsert: a sequence in a traced loop has elements of one rank, ",
                           value.array.element_type(), ", but gets ", call.tensor(1).type()));
    value.array = value.array.push_back(call.tensor(1));
    return {value};
  }
  const std::size_t size = value.elements.size();
  const std::size_t at = call.has(2) ? position_in(call, 2, size, true) : size;
  value.elements.insert(value.elements.begin() + static_cast<std::ptrdiff_t>(at), call.in(1));
  return {value};
}

Values run_erase(const Call& call) {
  Value value = sequence(call, 0);
  if (value.kind == Value::Kind::array) call.refuse("in a traced loop, elements cannot be erased");
  const std::size_t size = value.elements.size();
  if (size == 0) call.refuse("the sequence is empty");
  const std::size_t at = call.has(1) ? position_in(call, 1, size, false) : size - 1;
  value.elements.erase(value.elements.begin() + static_cast<std::ptrdiff_t>(at));
  return {value};
}

Values run_concat(const Call& call) {
  const Value& value = sequence(call, 0);
  const bool stacks = call.flag("new_axis", false);
  const std::int64_t given = call.integer("axis", 0);
  if (value.kind == Value::Kind::array) {
    if (given != 0) call.refuse("sequences of a traced loop are joined along axis 0 only");
    return {Value::of(stacks ? value.array.stack() : value.array.concat(), value.type)};
  }
  if (value.elements.empty()) call.refuse("the sequence is empty");
  Tensors tensors;
  for (const Value& element : value.elements) tensors.push_back(element.tensor);
  const int axis = call.axis_in(given, tensors[0].rank() + stacks);
  return {Value::of(stacks ? stack(tensors, axis) : concat(tensors, axis), value.type)};
}

Values run_split(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = call.axis(0);
  const std::int64_t size = x.dim(axis).size();
  std::vector<std::int64_t> lengths;
  if (call.has(1) && call.tensor(1).rank()) {
    lengths = call.known_integers(1);
  } else {
    const std::int64_t length = call.has(1) ? call.known_integer(1) : 1;
    if (length < 1) call.refuse(str("a part has the length ", length));
    for (std::int64_t at = 0; at < size; at += length)
      lengths.push_back(std::min(length, size - at));
  }
  const bool drops_axis = !call.has(1) && !call.flag("keepdims", true);
  std::vector<Value> parts;
  std::int64_t at = 0;
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > size - at) call.refuse("the lengths do not fit the axis");
    const Tensor part = slice(x, axis, at, at + length);
    parts.push_back(call.like(0, drops_axis ? squeeze(part, axis) : part));
    at += length;
  }
  return {Value::sequence(std::move(parts), call.type(0))};
}

/// Calls the body for the elements of sequences of one length; tensors are the same in each call.
Values run_map(const Call& call) {
  const Graph& body = call.graph("body");
  const std::size_t length = sequence(call, 0).elements.size();
  for (const Value& input : call.inputs()) {
    if (input.kind == Value::Kind::array)
      call.refuse("maps no sequence whose length is known only when the graph runs");
    if (input.is_sequence() && input.elements.size() != length)
      call.refuse("sequences differ in length");
  }
  std::vector<std::vector<Value>> columns(body.outputs.size());
  for (std::size_t i = 0; i < length; ++i) {
    Values in;
    for (const Value& input : call.inputs())
      in.push_back(input.is_sequence() ? input.elements[i] : input);
    const Values out = run_graph(body, in, &call.scope());
    for (std::size_t j = 0; j < out.size(); ++j) columns[j].push_back(out[j]);
  }
  Values results;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const ElementType type = length ? columns[j][0].type : body.outputs[j].type;
    results.push_back(Value::sequence(std::move(columns[j]), type));
  }
  return results;
}

Values run_optional(const Call& call) { return {call.has(0) ? call.in(0) : Value()}; }
Values run_has_element(const Call& call) {
  return {Value::truth(call.has(0) && call.in(0).is_present())};
}
Values run_get_element(const Call& call) {
  if (!call.in(0).is_present()) call.refuse("the optional has no element");
  return {call.in(0)};
}

const Rule kRules[] = {
    {"ConcatFromSequence", run_concat, "", 11},
    {"Optional", run_optional, "", 15},
    {"OptionalGetElement", run_get_element, "", 15},
    {"OptionalHasElement", run_has_element, "", 15},
    with_numbers({1}, {"SequenceAt", run_at, "", 11}),
    {"SequenceConstruct", run_construct, "", 11},
    {"SequenceEmpty", run_empty, "", 11},
    with_numbers({1}, {"SequenceErase", run_erase, "", 11}),
    with_numbers({2}, {"SequenceInsert", run_insert, "", 11}),
    {"SequenceLength", run_length, "", 11},
    {"SequenceMap", run_map, "", 17, kLatestVersion, false},
    with_numbers({1}, {"SplitToSequence", run_split, "", 11}),
};

}  // namespace

std::span<const Rule> sequence_rules() { return kRules; }

}  // namespace reel::imported
