#include "reel/onnx/value.h"

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/types/mode.h"

namespace reel::imported {

namespace {

Value of_kind(Value::Kind kind, ElementType type) {
  Value value;
  value.kind = kind;
  value.type = type;
  return value;
}
/// Returns a constant that `make` makes aside of a trace, which would record its creation.
template <class Make>
Value constant_aside(const Make& make, ElementType type) {
  const ModeScope aside({});
  return Value::constant(make(), type);
}

}  // namespace

Value Value::of(Tensor tensor, ElementType type) {
  Value value = of_kind(Kind::tensor, type);
  value.tensor = std::move(tensor);
  return value;
}
Value Value::constant(Tensor tensor, ElementType type) {
  Value value = of(std::move(tensor), type);
  value.is_constant = true;
  return value;
}
Value Value::integers(const std::vector<std::int64_t>& numbers) {
  return constant_aside([&] { return reel::tensor(numbers); }, ElementType::int64);
}
Value Value::integer(std::int64_t number) {
  return constant_aside([&] { return scalar(number, i64); }, ElementType::int64);
}
Value Value::truth(bool is_true) {
  return constant_aside([&] { return scalar(is_true); }, ElementType::boolean);
}
Value Value::sequence(std::vector<Value> elements, ElementType type) {
  Value value = of_kind(Kind::sequence, type);
  value.elements = std::move(elements);
  return value;
}
Value Value::sequence(TensorArray array, ElementType type) {
  Value value = of_kind(Kind::array, type);
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
