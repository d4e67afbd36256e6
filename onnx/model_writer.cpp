#include "reel/onnx/model_writer.h"

#include "reel/core/base/source_lines.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/onnx/onnx_error.h"

namespace reel::exported {

namespace {
Attribute of_kind(Attribute::Kind kind) {
  Attribute result;
  result.kind = kind;
  return result;
}
}  // namespace

Attribute integer(std::int64_t value) {
  Attribute result = of_kind(Attribute::Kind::integer);
  result.integer = value;
  return result;
}
Attribute integers(std::vector<std::int64_t> values) {
  Attribute result = of_kind(Attribute::Kind::integers);
  result.integers = std::move(values);
  return result;
}
Attribute integers(const std::vector<int>& values) {
  return integers(std::vector<std::int64_t>(values.begin(), values.end()));
}
Attribute number(double value) {
  Attribute result = of_kind(Attribute::Kind::number);
  result.number = value;
  return result;
}
Attribute text(std::string value) {
  Attribute result = of_kind(Attribute::Kind::text);
  result.text = std::move(value);
  return result;
}
Attribute texts(std::vector<std::string> values) {
  Attribute result = of_kind(Attribute::Kind::texts);
  result.texts = std::move(values);
  return result;
}
Attribute graph(std::shared_ptr<const imported::Graph> value) {
  Attribute result = of_kind(Attribute::Kind::graph);
  result.graph = std::move(value);
  return result;
}

Name ModelWriter::unique(const std::string& wanted) {
  const std::string base = wanted.empty() ? "value" : wanted;
  if (names_.insert(base).second) return base;
  int& count = counts_[base];
  while (true) {
    std::string name = str(base, '_', ++count);
    if (names_.insert(name).second) return name;
  }
}

std::string ModelWriter::size_name(const Dim& dim) {
  const auto [found, is_new] = size_names_.try_emplace(dim.node());
  if (!is_new) return found->second;
  return found->second = unique_size_name(dim.is_named() ? dim.name() : "");
}

std::string ModelWriter::unique_size_name(const std::string& wanted) {
  const std::string base = wanted.empty() ? "size" : wanted;
  std::string name = base;
  for (int i = 1; !size_names_taken_.insert(name).second; ++i) name = str(base, '_', i);
  return name;
}

std::optional<Tensor> ModelWriter::known_scalar(const Name& name) const {
  for (const Node& node : constants_) {
    if (node.outputs[0] != name) continue;
    const Tensor& value = node.attributes.at("value").tensor.tensor;
    if (value.rank() == 0) return value;
  }
  return {};
}
std::optional<std::int64_t> ModelWriter::known_integer(const Name& name) const {
  const std::optional<Tensor> value = known_scalar(name);
  if (!value || !is_integer(value->dtype())) return {};
  return value->dtype() == i64 ? value->item<std::int64_t>() : value->item<std::int32_t>();
}
std::optional<bool> ModelWriter::known_boolean(const Name& name) const {
  const std::optional<Tensor> value = known_scalar(name);
  if (!value || value->dtype() != boolean) return {};
  return value->item<bool>();
}

Name ModelWriter::constant(const Tensor& value) {
  const std::string_view bytes(value.data<char>(), static_cast<std::size_t>(value.type().bytes()));
  std::string key = str(value.dtype(), ' ', join(value.type().sizes(), ","), ' ');
  key.append(bytes);
  const auto [found, is_new] = known_constants_.try_emplace(std::move(key));
  if (!is_new) return found->second;
  Attribute attribute = of_kind(Attribute::Kind::tensor);
  attribute.tensor = imported::Value::of(value);
  Node node;
  node.op = "Constant";
  node.name = unique("constant");
  node.outputs = {node.name};
  node.attributes.emplace("value", std::move(attribute));
  found->second = node.name;
  constants_.push_back(std::move(node));
  return found->second;
}

Name ModelWriter::integers(const std::vector<std::int64_t>& values) {
  return constant(tensor(values, {Dim(static_cast<std::int64_t>(values.size()))}, i64));
}
Name ModelWriter::integer(std::int64_t value, DType dtype) {
  return constant(full({}, value, dtype));
}
Name ModelWriter::number(double value, DType dtype) {
  if (is_integer(dtype)) return integer(static_cast<std::int64_t>(value), dtype);
  return constant(full({}, value, dtype));
}

Name ModelWriter::add_key(DrawKey key) {
  const Name name = unique("key");
  keys_.emplace(name, std::move(key));
  return name;
}
const DrawKey* ModelWriter::find_key(const Name& name) const {
  const auto found = keys_.find(name);
  return found == keys_.end() ? nullptr : &found->second;
}
const LoopPosition* ModelWriter::find_position(const Name& name) const {
  const auto found = positions_.find(name);
  return found == positions_.end() ? nullptr : &found->second;
}
void ModelWriter::add_position(const Name& name, LoopPosition position) {
  positions_.emplace(name, std::move(position));
}

void ModelWriter::refuse(const OpRecord& record, const std::string& reason) {
  const std::string place = place_text(record.source);
  refused_.push_back(
      str(record.op->name, place.empty() ? "" : " at ", place, reason.empty() ? "" : ": ", reason));
}

void ModelWriter::check() const {
  if (refused_.empty()) return;
  std::string message = str("save_onnx: ONNX cannot express ", refused_.size(),
                            refused_.size() == 1 ? " op" : " ops", " of \"", options_.name, "\":");
  for (const std::string& line : refused_) message += str("\n  ", line);
  throw OnnxError(message);
}

}  // namespace reel::exported
