#include "reel/onnx/graph_writer.h"

#include <algorithm>
#include <numeric>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/dim_expression.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/node_form.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {

std::int64_t known_size(const Dim& dim) { return dim.raw_size(); }

bool is_known_empty(const TensorType& type) {
  const Dims& dims = type.dims();
  const auto is_known = [](const Dim& dim) { return known_size(dim) >= 0; };
  const auto is_zero = [](const Dim& dim) { return known_size(dim) == 0; };
  return !type.is_list() && !is_token(type) && std::all_of(dims.begin(), dims.end(), is_known) &&
         std::any_of(dims.begin(), dims.end(), is_zero);
}

// ---- Values and records -------------------------------------------------------------------------

void GraphWriter::set(ValueId value, const Name& name) {
  if (names_.insert_or_assign(value, name).second) named_.push_back(value);
}

Name GraphWriter::name_or_none(ValueId value) const {
  const auto found = names_.find(value);
  return found == names_.end() ? Name() : found->second;
}

const Name& GraphWriter::name(ValueId value) const {
  const auto found = names_.find(value);
  if (found == names_.end() || found->second.empty() || model_.find_key(found->second))
    throw NotExpressible{str("reads a value of type ", type(value), " that ONNX has not")};
  return found->second;
}

bool GraphWriter::is_read(ValueId value) const {
  if (reads_.empty()) {
    reads_.resize(graph_.types.size());
    for (const OpRecord& record : graph_.records)
      for (const ValueId v : graph_.inputs_of(record)) reads_[v] = true;
    for (const ValueId v : graph_.outputs) reads_[v] = true;
  }
  return reads_[value];
}

void GraphWriter::write_records() {
  for (const OpRecord& record : graph_.records) write(record);
}

Name GraphWriter::name_after_writing(ValueId value) {
  if (names_.count(value)) return name(value);
  for (const OpRecord& record : graph_.records) {
    const auto outputs = graph_.outputs_of(record);
    if (std::find(outputs.begin(), outputs.end(), value) == outputs.end()) continue;
    for (const ValueId input : graph_.inputs_of(record)) name_after_writing(input);
    write(record);
  }
  return name(value);
}

void GraphWriter::write(const OpRecord& record) {
  const auto outputs = graph_.outputs_of(record);
  Names names;
  // Results without elements are constants. onnxruntime has no implementation of some ops for them,
  // and its optimiser takes the addition of a constant without elements for the identity.
  const auto is_empty = [&](ValueId value) { return is_known_empty(type(value)); };
  if (!outputs.empty() && std::all_of(outputs.begin(), outputs.end(), is_empty)) {
    for (const ValueId value : outputs) {
      Dims sizes;
      for (const Dim& dim : type(value).dims()) sizes.emplace_back(known_size(dim));
      set(value, model_.constant(zeros(TensorType(type(value).dtype(), sizes))));
    }
    return;
  }
  try {
    const Writer* const writer = find_writer(record.op->name);
    if (!writer) throw NotExpressible{std::string(reason_against(record.op->name))};
    names = writer->write({*this, record});
  } catch (const NotExpressible& error) {
    model_.refuse(record, error.reason);
    // Later records read these names, so that their own problems are found too.
    names.assign(outputs.size(), "not expressible");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) set(outputs[i], names[i]);
}

// ---- Nodes --------------------------------------------------------------------------------------

Names GraphWriter::add(const std::string& op, const Names& inputs, std::size_t outputs,
                       const Attributes& attributes) {
  Node node;
  node.op = op;
  node.inputs = inputs;
  node.attributes = attributes;
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(model_.unique(op));
  node.name = outputs ? node.outputs[0] : model_.unique(op);
  use_form_of_op_set(node, model_);
  nodes_.push_back(node);
  return node.outputs;
}

Name GraphWriter::add(const std::string& op, const Names& inputs, const Attributes& attributes) {
  return add(op, inputs, 1, attributes)[0];
}

void GraphWriter::add_identity(const Name& from, const Name& to) {
  Node node;
  node.op = "Identity";
  node.name = to;
  node.inputs = {from};
  node.outputs = {to};
  nodes_.push_back(std::move(node));
}

Name GraphWriter::cast(const Name& x, DType dtype) {
  return add("Cast", {x},
             {{"to", integer(static_cast<std::int64_t>(imported::element_type_of(dtype)))}});
}

Name GraphWriter::transpose(const Name& x, const std::vector<int>& order) {
  if (std::is_sorted(order.begin(), order.end())) return x;
  return add("Transpose", {x}, {{"perm", integers(order)}});
}

Name GraphWriter::unsqueeze(const Name& x, const std::vector<int>& axes) {
  if (axes.empty()) return x;
  return add("Unsqueeze", {x, model_.integers({axes.begin(), axes.end()})});
}
Name GraphWriter::squeeze(const Name& x, const std::vector<int>& axes) {
  if (axes.empty()) return x;
  return add("Squeeze", {x, model_.integers({axes.begin(), axes.end()})});
}

Name GraphWriter::reshape(const Name& x, const Dims& dims) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : dims) sizes.push_back(known_size(dim));
  // One unknown size follows from the others. Beside a size of 0 it would not.
  const bool has_zero = std::count(sizes.begin(), sizes.end(), 0) > 0;
  if (std::count(sizes.begin(), sizes.end(), -1) <= 1 && !has_zero)
    return add("Reshape", {x, model_.integers(sizes)});
  return add("Reshape", {x, shape(dims)}, {{"allowzero", integer(1)}});
}

Name GraphWriter::expand(const Name& x, const Dims& dims) {
  // onnxruntime takes an Expand for the identity if it knows all sizes, and each is 0, 1 or the
  // size in x. Sizes of 0 are therefore cut.
  Dims sizes = dims;
  std::vector<std::int64_t> empty;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (known_size(sizes[i]) != 0) continue;
    empty.push_back(static_cast<std::int64_t>(i));
    sizes[i] = Dim(1);
  }
  const Name result = add("Expand", {x, shape(sizes)});
  if (empty.empty()) return result;
  const Name zeros = model_.integers(std::vector<std::int64_t>(empty.size()));
  return add("Slice", {result, zeros, zeros, model_.integers(empty)});
}

Name GraphWriter::concat(const Names& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  return add("Concat", parts, {{"axis", integer(axis)}});
}

Name GraphWriter::where(const Name& condition, const Name& a, const Name& b, DType dtype) {
  if (dtype != boolean) return add("Where", {condition, a, b});
  const Name first = add("And", {condition, a}), second = add("And", {logical_not(condition), b});
  return add("Or", {first, second});
}

Name GraphWriter::sum(const Name& x, const std::vector<int>& axes) {
  if (axes.empty()) return x;
  return add("ReduceSum", {x, model_.integers({axes.begin(), axes.end()})},
             {{"keepdims", integer(0)}});
}

Name GraphWriter::any(const Name& x, const std::vector<int>& axes) {
  if (axes.empty()) return x;
  return cast(sum(cast(x, i32), axes), boolean);  // a maximum over no elements is open in ONNX
}

Name GraphWriter::range(const Dim& dim, DType dtype) {
  const Name numbers =
      add("Range", {model_.integer(0), squeeze(size(dim), {0}), model_.integer(1)});
  return dtype == i64 ? numbers : cast(numbers, dtype);
}

Name GraphWriter::aligned(const Name& x, const Dims& from, const Dims& to) {
  if (from.empty() || !from[0].is_named()) return x;
  std::vector<int> places, order(from.size());
  for (const Dim& dim : from) places.push_back(find(to, dim));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return places[static_cast<std::size_t>(a)] < places[static_cast<std::size_t>(b)];
  });
  std::sort(places.begin(), places.end());
  std::vector<int> missing;
  for (int axis = places[0]; axis < static_cast<int>(to.size()); ++axis)
    if (!std::count(places.begin(), places.end(), axis)) missing.push_back(axis - places[0]);
  return unsqueeze(transpose(x, order), missing);
}

Name GraphWriter::mask_padding(const Name& x, const TensorType& type, const Name& padding) {
  Name result = x;
  for (int i = 0; i < type.rank(); ++i) {
    if (!is_masked(type, i)) continue;
    const Dim& dim = type.dims()[static_cast<std::size_t>(i)];
    Dims dims = dim.length_dims();
    dims.push_back(dim);
    result = where(aligned(mask(dim), dims, type.dims()), result, padding, type.dtype());
  }
  return result;
}

// ---- Sizes --------------------------------------------------------------------------------------

Name GraphWriter::size_from_values(const Dim& dim) {
  for (const ValueId value : named_) {
    const TensorType& of = type(value);
    const Name name = name_or_none(value);
    if (of.is_list() && (model_.element_sizes.count(name) || model_.joined_lengths.count(name)))
      continue;  // its shape has the largest size, or the sum of all sizes
    int axis = name.empty() ? -1 : find(of.dims(), dim);
    if (axis < 0) continue;
    axis += of.is_list();
    return add("Shape", {name}, {{"start", integer(axis)}, {"end", integer(axis + 1)}});
  }
  return "";
}

Name GraphWriter::size(const Dim& dim) {
  if (known_size(dim) >= 0) return model_.integers({known_size(dim)});
  for (const auto& [twin, of] : twins_)
    if (twin == dim) return size(of);
  if (const auto found = sizes_.find(dim.node()); found != sizes_.end()) return found->second;
  Name result = size_from_values(dim);
  const DimExpression* const expression = expression_of(dim);
  if (!result.empty()) {
    // found
  } else if (const auto lengths = lengths_.find(dim.node()); lengths != lengths_.end()) {
    result = largest(lengths->second);
  } else if (expression && !(dim.is_ragged() && expression->operands.size() > 1)) {
    result = computed(*expression, true);
  } else if (expression) {
    const Name made = this->lengths(dim);
    lengths_.insert_or_assign(dim.node(), made);
    return size(dim);
  } else if (outer_) {
    result = outer_->size(env_.knows(dim) ? env_.resolve(dim) : dim);
  } else {
    throw NotExpressible{str("no value shows the size of the dim ", dim)};
  }
  sizes_.emplace(dim.node(), result);
  return result;
}

Dim GraphWriter::twin(const Dim& dim) {
  const std::string name = dim.name() + "_twin";
  if (known_size(dim) >= 0) return {name, known_size(dim)};
  return twins_.emplace_back(Dim(name), dim).first;
}

Name GraphWriter::computed(const DimExpression& expression, bool is_size) {
  const DType dtype = is_size ? i64 : i32;
  const auto term = [&](const Dim& dim) { return is_size ? size(dim) : lengths(dim); };
  const auto constant = [&](std::int64_t number) {
    return is_size ? model_.integers({number}) : model_.integer(number, dtype);
  };
  Name result = term(expression.operands[0]);
  const Name number = constant(expression.number);
  switch (expression.operation) {
    case DimOperation::sum:
      for (std::size_t i = 1; i < expression.operands.size(); ++i)
        result = add("Add", {result, term(expression.operands[i])});
      return add("Add", {result, number});
    case DimOperation::difference:
      if (expression.operands.size() > 1)
        return add("Max", {add("Sub", {result, term(expression.operands[1])}), constant(0)});
      return add("Max", {add("Sub", {result, number}), constant(0)});
    case DimOperation::product:
      for (std::size_t i = 1; i < expression.operands.size(); ++i)
        result = add("Mul", {result, term(expression.operands[i])});
      return add("Mul", {result, number});
    case DimOperation::quotient:
      if (expression.operands.size() > 1) {  // 0 / 0 is 0
        const Name divisor = add("Max", {term(expression.operands[1]), constant(1)});
        result = add("Div", {result, divisor});
      }
      return add("Div", {result, number});
    case DimOperation::floor:
      return add("Div", {result, number});
    case DimOperation::ceil:
      return add("Div", {add("Add", {result, constant(expression.number - 1)}), number});
  }
  return result;
}

Name GraphWriter::shape(const Dims& dims) {
  std::vector<std::int64_t> run;
  Names parts;
  const auto flush = [&] {
    if (!run.empty()) parts.push_back(model_.integers(run));
    run.clear();
  };
  for (const Dim& dim : dims) {
    if (known_size(dim) >= 0) {
      run.push_back(known_size(dim));
      continue;
    }
    flush();
    parts.push_back(size(dim));
  }
  flush();
  return parts.empty() ? model_.integers(std::vector<std::int64_t>{}) : concat(parts, 0);
}

void GraphWriter::set_lengths(const Dim& dim, const Name& lengths) {
  lengths_.insert_or_assign(dim.node(), lengths);
}

Name GraphWriter::lengths(const Dim& dim) {
  if (const auto found = lengths_.find(dim.node()); dim.node() && found != lengths_.end())
    return found->second;
  Name result;
  if (dim.node() && dim.node()->lengths) {  // a dim from outside
    result = model_.constant(Tensor(dim.node()->lengths));
  } else if (!dim.is_ragged()) {
    result = cast(squeeze(size(dim), {0}), i32);
  } else if (const DimExpression* const expression = expression_of(dim)) {
    for (const Dim& of : expression->operands)
      if (of.is_ragged() && of.length_dims() != dim.length_dims())
        throw NotExpressible{str("lengths of ", dim, " are over several dims")};
    result = computed(*expression, false);
  } else if (outer_) {
    result = outer_->lengths(env_.knows(dim) ? env_.resolve(dim) : dim);
  } else {
    throw NotExpressible{str("no value shows the lengths of the dim ", dim)};
  }
  if (dim.node()) lengths_.emplace(dim.node(), result);
  return result;
}

Name GraphWriter::largest(const Name& lengths) {
  const Name flat = add("Reshape", {cast(lengths, i64), model_.integers({-1})});
  return add("ReduceMax", {concat({model_.integers({0}), flat}, 0)});
}

Name GraphWriter::mask(const Dim& dim) {
  if (const auto found = masks_.find(dim.node()); dim.node() && found != masks_.end())
    return found->second;
  const Name places = range(dim, i32);
  // lengths() may throw. GCC 12 then destroys strings of a list in ?: that were never made.
  Name result;
  if (dim.is_ragged()) {
    const Name ends = unsqueeze(lengths(dim), {static_cast<int>(dim.length_dims().size())});
    result = add("Less", {places, ends});
  } else {
    result = add("GreaterOrEqual", {places, model_.integer(0, i32)});
  }
  if (dim.node()) masks_.emplace(dim.node(), result);
  return result;
}

imported::Declared GraphWriter::declared(const Name& name, const TensorType& type,
                                         bool with_names) const {
  imported::Declared result;
  result.name = name;
  result.type = imported::element_type_of(type.dtype());
  result.shape.emplace();
  if (type.is_list()) result.shape->emplace_back();  // the elements, along the first axis
  for (const Dim& dim : type.dims()) {
    imported::Declared::Size size;
    // A size of 0 is left out: ONNX's inference takes 1 for the broadcast of 0 and 1.
    if (known_size(dim) > 0)
      size.size = known_size(dim);
    else if (with_names && known_size(dim) < 0)
      size.name = model_.size_name(dim);
    result.shape->push_back(std::move(size));
  }
  return result;
}

Dim GraphWriter::outermost(const Dim& dim) {
  if (known_size(dim) >= 0) return dim;
  if (outer_) return outer_->outermost(env_.knows(dim) ? env_.resolve(dim) : dim);
  const auto has_dim = [&](const TensorType& type) { return contains(type.dims(), dim); };
  if (!expression_of(dim) && std::none_of(graph_.types.begin(), graph_.types.end(), has_dim))
    throw NotExpressible{
        str("its dim ", dim, " has a size of its own in each iteration or branch")};
  return dim;
}

imported::Declared GraphWriter::declared_input(const Name& name, const TensorType& type) {
  imported::Declared result = declared(name, type, false);
  for (std::size_t i = 0; i < type.dims().size(); ++i)
    if (const Dim dim = outermost(type.dims()[i]); known_size(dim) < 0)
      (*result.shape)[i].name = model_.size_name(dim);
  return result;
}

}  // namespace reel::exported
