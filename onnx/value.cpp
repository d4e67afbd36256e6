#include "reel/onnx/value.h"

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/types/mode.h"

namespace reel::imported {

Value Value::of(Tensor tensor, ElementType type) {
  Value value;
  value.kind = Kind::tensor;
  value.type = type;
  value.tensor = std::move(tensor);
  return value;
}
Value Value::constant(Tensor tensor, ElementType type) {
  Value value = of(std::move(tensor), type);
  value.is_constant = true;
  return value;
}
// Aside of a trace, which would record the tensor's creation.
Value Value::integers(const std::vector<std::int64_t>& numbers) {
  const ModeScope aside({});
  return constant(reel::tensor(numbers), ElementType::int64);
}
Value Value::integer(std::int64_t number) {
  const ModeScope aside({});
  return constant(scalar(number, i64), ElementType::int64);
}
Value Value::truth(bool is_true) {
  const ModeScope aside({});
  return constant(scalar(is_true), ElementType::boolean);
}
Value Value::sequence(std::vector<Value> elements, ElementType type) {
  Value value;
  value.kind = Kind::sequence;
  value.type = type;
  value.elements = std::move(elements);
  return value;
}
Value Value::sequence(TensorArray array, ElementType type) {
  Value value;
  value.kind = Kind::array;
  value.type = type;
  value.array = std::move(array);
  return value;
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Value::Kind::absent:
      return "an optional without an element";
    case Value::Kind::tensor:
      return str(value.tensor.type());
    case Value::Kind::sequence:
      return str("a sequence of ", value.elements.size(), " tensors");
    default:
      return str("a sequence of ", value.array.element_type());
  }
}

}  // namespace reel::imported
