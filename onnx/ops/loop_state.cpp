#include "reel/onnx/ops/loop_state.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::imported {
TensorType element_type(const Value& sequence) {
  if (sequence.kind == Value::Kind::array) return sequence.array.element_type();
  const std::vector<Value>& elements = sequence.elements;
  if (elements.empty())
    throw TraceError(
        "an empty sequence in a traced loop or branch: the rank of its elements is not known");
  Dims dims = elements[0].tensor.dims();
  for (const Value& element : elements) {
    const Dims& other = element.tensor.dims();
    if (other.size() != dims.size())
      throw TraceError(str("a sequence in a traced loop or branch has elements of different rank, ",
                           elements[0].tensor.type(), " and ", element.tensor.type()));
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (!(dims[i] == other[i])) dims[i] = Dim::unknown();
  }
  return {elements[0].tensor.dtype(), dims};
}

TensorArray array_of(const TensorType& type, const std::vector<Value>& elements) {
  TensorArray array(type);
  for (const Value& element : elements) array = array.push_back(element.tensor);
  return array;
}

TensorArray array_of(const Value& sequence) {
  if (sequence.kind == Value::Kind::array) return sequence.array;
  return array_of(element_type(sequence), sequence.elements);
}

Dims unknown_sizes(const Dims& dims) {
  Dims result;
  for (std::size_t i = 0; i < dims.size(); ++i) result.push_back(Dim::unknown());
  return result;
}

Layout::Layout(const Values& values) {
  for (const Value& value : values) {
    if (!value.is_present())
      throw TraceError("an optional without an element cannot change in a traced loop or branch");
    Slot slot{value.is_sequence(), value.type, {}};
    if (value.is_sequence()) slot.element = element_type(value);
    slots_.push_back(slot);
  }
}

TreeLeaves Layout::leaves(const Values& values, const std::string& what) const {
  TreeLeaves leaves;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Value& value = values[i];
    const Slot& slot = slots_[i];
    if (!value.is_present() || value.is_sequence() != slot.is_sequence || value.type != slot.type)
      throw ArgumentError(str(what, ": value ", i, " is ", describe(value), " of the type ",
                              value.type, ", but was a ", slot.is_sequence ? "sequence" : "tensor",
                              " of the type ", slot.type));
    if (!slot.is_sequence)
      leaves.push_back(TreeLeaf::of(value.tensor));
    else if (value.kind == Value::Kind::array)
      leaves.push_back(TreeLeaf::of(value.array.list()));
    else
      leaves.push_back(TreeLeaf::of(array_of(*slot.element, value.elements).list()));
  }
  return leaves;
}

Values Layout::values(const TreeLeaves& leaves, std::size_t first) const {
  Values values;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Tensor& tensor = leaves[first + i].tensor;
    values.push_back(slots_[i].is_sequence
                         ? Value::sequence(TensorArray::of_list(tensor), slots_[i].type)
                         : Value::of(tensor, slots_[i].type));
  }
  return values;
}

}  // namespace reel::imported
