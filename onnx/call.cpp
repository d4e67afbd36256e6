#include "reel/onnx/call.h"

#include "reel/core/base/str.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

std::string input_name(const Node& node, std::size_t i) {
  return str("input ", i, i < node.inputs.size() ? str(" (", node.inputs[i], ")") : "");
}

[[noreturn]] void refuse_unknown(const Node& node, std::size_t i) {
  throw TraceError(str(node.op, ": ", input_name(node, i),
                       " gives sizes or positions, but its elements are known only when the graph "
                       "runs; pass a tensor that is no argument of the trace, or run eagerly"));
}

template <class T>
std::vector<T> elements_as(const Tensor& tensor, DType dtype) {
  const ModeScope aside({});
  return cast(tensor, dtype).to_vector<T>();
}

}  // namespace

const Value& Call::in(std::size_t i) const {
  if (!has(i) || i >= inputs_.size())
    throw ArgumentError(str(node_.op, ": ", input_name(node_, i), " is missing"));
  return inputs_[i];
}

const Tensor& Call::tensor(std::size_t i) const {
  const Value& value = in(i);
  if (value.kind != Value::Kind::tensor)
    throw ArgumentError(str(node_.op, ": ", input_name(node_, i), " is ", describe(value),
                            ", but must be a tensor"));
  return value.tensor;
}

const Attribute* Call::find(const std::string& name, Attribute::Kind kind) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  if (found->second.kind != kind)
    throw ArgumentError(
        str(node_.op, ": attribute ", name, " has another type than the op's schema"));
  return &found->second;
}

std::int64_t Call::integer(const std::string& name, std::int64_t otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::integer);
  return found ? found->integer : otherwise;
}
double Call::number(const std::string& name, double otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::number);
  return found ? found->number : otherwise;
}
std::string Call::text(const std::string& name, const std::string& otherwise) const {
  const Attribute* found = find(name, Attribute::Kind::text);
  return found ? found->text : otherwise;
}
std::vector<std::int64_t> Call::integers(const std::string& name) const {
  const Attribute* found = find(name, Attribute::Kind::integers);
  return found ? found->integers : std::vector<std::int64_t>();
}
std::vector<double> Call::numbers(const std::string& name) const {
  const Attribute* found = find(name, Attribute::Kind::numbers);
  return found ? found->numbers : std::vector<double>();
}
std::vector<std::string> Call::texts(const std::string& name) const {
  const Attribute* found = find(name, Attribute::Kind::texts);
  return found ? found->texts : std::vector<std::string>();
}
const Value& Call::tensor_attribute(const std::string& name) const {
  const Attribute* found = find(name, Attribute::Kind::tensor);
  if (!found) throw ArgumentError(str(node_.op, ": attribute ", name, " is missing"));
  return found->tensor;
}
const Graph& Call::graph(const std::string& name) const {
  const Attribute* found = find(name, Attribute::Kind::graph);
  if (!found) throw ArgumentError(str(node_.op, ": attribute ", name, " is missing"));
  return *found->graph;
}

int Call::axis_in(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    throw ArgumentError(str(node_.op, ": axis ", axis, " is out of range for rank ", rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

bool Call::is_known(std::size_t i) const { return !tensor(i).is_traced(); }

std::vector<std::int64_t> Call::known_integers(std::size_t i) const {
  if (!is_known(i)) refuse_unknown(node_, i);
  return elements_as<std::int64_t>(tensor(i), i64);
}

std::int64_t Call::known_integer(std::size_t i) const {
  const std::vector<std::int64_t> all = known_integers(i);
  if (all.size() != 1)
    throw ShapeError(str(node_.op, ": ", input_name(node_, i), " is ", tensor(i).type(),
                         ", but must have one element"));
  return all[0];
}

std::vector<double> Call::known_numbers(std::size_t i) const {
  if (!is_known(i)) refuse_unknown(node_, i);
  return elements_as<double>(tensor(i), f64);
}

Dims Call::known_sizes(std::size_t i) const {
  if (in(i).sizes) return *in(i).sizes;
  Dims sizes;
  const std::vector<std::int64_t> numbers = known_integers(i);
  check_rank(node_, numbers.size());
  for (const std::int64_t size : numbers) sizes.emplace_back(size);
  return sizes;
}

void Call::refuse(const std::string& reason) const {
  throw ArgumentError(str(node_.op, ": ", reason));
}

}  // namespace reel::imported
