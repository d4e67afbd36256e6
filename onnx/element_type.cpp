#include "reel/onnx/element_type.h"

#include <iterator>

namespace reel::imported {
namespace {

constexpr const char* kNames[] = {
    "undefined",      "float",    "uint8",        "int8",           "uint16",
    "int16",          "int32",    "int64",        "string",         "bool",
    "float16",        "double",   "uint32",       "uint64",         "complex64",
    "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
    "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
    "uint2",          "int2"};

}  // namespace

std::ostream& operator<<(std::ostream& out, ElementType type) {
  const auto number = static_cast<std::size_t>(type);
  return out << (number < std::size(kNames) ? kNames[number] : "unknown");
}

std::optional<DType> dtype_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
    case ElementType::float16:
    case ElementType::bfloat16:
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz:
    case ElementType::float8e8m0:
    case ElementType::float4e2m1:
      return f32;
    case ElementType::float64:
      return f64;
    case ElementType::uint8:
    case ElementType::int8:
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::int32:
    case ElementType::uint4:
    case ElementType::int4:
    case ElementType::uint2:
    case ElementType::int2:
      return i32;
    case ElementType::int64:
    case ElementType::uint32:
    case ElementType::uint64:
      return i64;
    case ElementType::boolean:
      return boolean;
    default:
      return {};
  }
}

ElementType element_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ElementType::float32;
    case DType::f64:
      return ElementType::float64;
    case DType::i32:
      return ElementType::int32;
    case DType::i64:
      return ElementType::int64;
    default:
      return ElementType::boolean;
  }
}

bool is_float(ElementType type) {
  const auto dtype = dtype_of(type);
  return dtype && is_float(*dtype);
}
bool is_integer(ElementType type) {
  const auto dtype = dtype_of(type);
  return dtype && is_integer(*dtype);
}

int bits_of(ElementType type) {
  switch (type) {
    case ElementType::uint2:
    case ElementType::int2:
      return 2;
    case ElementType::uint4:
    case ElementType::int4:
    case ElementType::float4e2m1:
      return 4;
    case ElementType::uint8:
    case ElementType::int8:
    case ElementType::boolean:
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz:
    case ElementType::float8e8m0:
      return 8;
    case ElementType::uint16:
    case ElementType::int16:
    case ElementType::float16:
    case ElementType::bfloat16:
      return 16;
    case ElementType::float32:
    case ElementType::int32:
    case ElementType::uint32:
      return 32;
    default:
      return 64;
  }
}

bool is_tiny_float(ElementType type) { return is_float(type) && bits_of(type) <= 8; }

}  // namespace reel::imported
