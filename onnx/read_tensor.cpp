#include "reel/onnx/read_tensor.h"

#include <cstring>
#include <filesystem>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/shape.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/files/stored_file.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/stored.h"

namespace reel::imported {
namespace {

using ::onnx::TensorProto;

[[noreturn]] void refuse(const TensorProto& tensor, const std::string& reason) {
  throw OnnxError(str("tensor ", tensor.name(), ": ", reason));
}

/// Returns the bytes of elements in raw data. Elements of fewer than 8 bits share bytes.
std::uint64_t raw_size(ElementType type, std::uint64_t count) {
  const auto bits = static_cast<std::uint64_t>(bits_of(type));
  return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}

/// Returns the number of elements. Throws OnnxError if it does not fit into 62 bits.
std::uint64_t count_of(const TensorProto& tensor) {
  std::uint64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t size : tensor.dims()) {
    if (size < 0) refuse(tensor, str("has the size ", size));
    is_empty = is_empty || size == 0;
    if (size && __builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count))
      refuse(tensor, "has sizes whose product does not fit into 64 bits");
  }
  if (count > std::uint64_t{1} << 58)
    refuse(tensor, "has sizes whose product does not fit into memory");
  return is_empty ? 0 : count;
}

template <class To, class From>
std::vector<To> converted(const char* bytes, std::uint64_t count) {
  std::vector<To> result(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, bytes + i * sizeof(From), sizeof(From));
    result[i] = static_cast<To>(element);
  }
  return result;
}

/// Returns floats of 16 bits and fewer. Elements of fewer than 8 bits begin at a byte's lower bits.
std::vector<float> decoded(const char* bytes, std::uint64_t count, ElementType type) {
  const auto bits = static_cast<std::uint64_t>(bits_of(type));
  std::vector<float> result(count), table;
  if (count >> bits)  // more elements than numbers
    for (std::uint32_t i = 0; i < 1U << bits; ++i) table.push_back(number_of_bits(i, type));
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint16_t element = 0;
    std::memcpy(&element, bytes + i * bits / 8, bits > 8 ? 2 : 1);
    if (bits < 8) element = element >> (i * bits % 8) & ((1U << bits) - 1);
    result[i] = table.empty() ? number_of_bits(element, type) : table[element];
  }
  return result;
}

/// Returns integers of fewer than 8 bits.
std::vector<std::int32_t> unpacked(const char* bytes, std::uint64_t count, ElementType type) {
  const auto bits = static_cast<std::uint64_t>(bits_of(type));
  const std::int32_t size = 1 << bits;
  const bool has_sign = type == ElementType::int2 || type == ElementType::int4;
  std::vector<std::int32_t> result(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i * bits / 8]);
    result[i] = byte >> (i * bits % 8) & (size - 1);
    if (has_sign && result[i] >= size / 2) result[i] -= size;
  }
  return result;
}

Dims dims_of(const TensorProto& tensor) {
  Dims dims;
  for (const std::int64_t size : tensor.dims()) dims.emplace_back(size);
  return dims;
}

/// Returns a tensor with these elements. For no dims it is a scalar; tensor() would make a vector.
template <class T>
Tensor tensor_of(const TensorProto& proto, const std::vector<T>& elements) {
  const Tensor result = tensor(std::span<const T>(elements), dims_of(proto));
  return proto.dims_size() ? result : reshape(result, std::vector<std::int64_t>());
}
Tensor tensor_of_booleans(const TensorProto& proto, const std::vector<std::uint8_t>& elements) {
  std::vector<bool> bits(elements.size());
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = elements[i] != 0;
  const Tensor result = tensor(bits, dims_of(proto));
  return proto.dims_size() ? result : reshape(result, std::vector<std::int64_t>());
}

void check_uint64(const TensorProto& proto, const std::vector<std::int64_t>& elements) {
  for (const std::int64_t element : elements)
    if (element < 0) refuse(proto, "has a uint64 of 2^63 or more, which the dtype i64 cannot hold");
}

/// Returns the tensor of `count` elements that lie in memory as raw data.
Tensor of_raw(const TensorProto& proto, ElementType type, const char* bytes, std::uint64_t count) {
  switch (type) {
    case ElementType::float32:
      return tensor_of(proto, converted<float, float>(bytes, count));
    case ElementType::float64:
      return tensor_of(proto, converted<double, double>(bytes, count));
    case ElementType::float16:
    case ElementType::bfloat16:
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz:
    case ElementType::float8e8m0:
    case ElementType::float4e2m1:
      return tensor_of(proto, decoded(bytes, count, type));
    case ElementType::uint2:
    case ElementType::int2:
    case ElementType::uint4:
    case ElementType::int4:
      return tensor_of(proto, unpacked(bytes, count, type));
    case ElementType::uint8:
      return tensor_of(proto, converted<std::int32_t, std::uint8_t>(bytes, count));
    case ElementType::int8:
      return tensor_of(proto, converted<std::int32_t, std::int8_t>(bytes, count));
    case ElementType::uint16:
      return tensor_of(proto, converted<std::int32_t, std::uint16_t>(bytes, count));
    case ElementType::int16:
      return tensor_of(proto, converted<std::int32_t, std::int16_t>(bytes, count));
    case ElementType::int32:
      return tensor_of(proto, converted<std::int32_t, std::int32_t>(bytes, count));
    case ElementType::uint32:
      return tensor_of(proto, converted<std::int64_t, std::uint32_t>(bytes, count));
    case ElementType::boolean:
      return tensor_of_booleans(proto, converted<std::uint8_t, std::uint8_t>(bytes, count));
    default: {
      const auto elements = converted<std::int64_t, std::int64_t>(bytes, count);
      if (type == ElementType::uint64) check_uint64(proto, elements);
      return tensor_of(proto, elements);
    }
  }
}

template <class To, class Field>
std::vector<To> elements_of(const TensorProto& proto, const Field& field, std::uint64_t count) {
  if (static_cast<std::uint64_t>(field.size()) != count)
    refuse(proto, str("has ", field.size(), " elements, but its sizes make ", count));
  return std::vector<To>(field.begin(), field.end());
}

/// Returns a tensor with its elements in the field for its type.
Tensor of_field(const TensorProto& proto, ElementType type, std::uint64_t count) {
  switch (type) {
    case ElementType::float32:
      return tensor_of(proto, elements_of<float>(proto, proto.float_data(), count));
    case ElementType::float64:
      return tensor_of(proto, elements_of<double>(proto, proto.double_data(), count));
    case ElementType::int64:
      return tensor_of(proto, elements_of<std::int64_t>(proto, proto.int64_data(), count));
    case ElementType::uint32:
      return tensor_of(proto, elements_of<std::int64_t>(proto, proto.uint64_data(), count));
    case ElementType::uint64: {
      const auto elements = elements_of<std::int64_t>(proto, proto.uint64_data(), count);
      check_uint64(proto, elements);
      return tensor_of(proto, elements);
    }
    case ElementType::float16:
    case ElementType::bfloat16: {
      const auto bits = elements_of<std::uint16_t>(proto, proto.int32_data(), count);
      return of_raw(proto, type, reinterpret_cast<const char*>(bits.data()), count);
    }
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz:
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz:
    case ElementType::float8e8m0:
    case ElementType::float4e2m1:
    case ElementType::uint2:
    case ElementType::int2:
    case ElementType::uint4:
    case ElementType::int4: {  // a number for each byte
      const auto bytes =
          elements_of<std::uint8_t>(proto, proto.int32_data(), raw_size(type, count));
      return of_raw(proto, type, reinterpret_cast<const char*>(bytes.data()), count);
    }
    case ElementType::boolean:
      return tensor_of_booleans(proto, elements_of<std::uint8_t>(proto, proto.int32_data(), count));
    default:
      return tensor_of(proto, elements_of<std::int32_t>(proto, proto.int32_data(), count));
  }
}

/// Returns the path of a file with elements. Throws OnnxError unless it is below the model's
/// folder, also if links lead out of it.
std::string external_path(const TensorProto& proto, const std::string& location,
                          const ModelFile& file) {
  namespace fs = std::filesystem;
  if (location.find('\0') != std::string::npos)
    refuse(proto, "has its elements in a file whose name has a NUL byte");
  if (file.folder.empty())
    refuse(proto, "has its elements in another file, which a model in memory cannot have");
  const fs::path relative(location);
  std::error_code error;
  const fs::path folder = fs::canonical(file.folder, error);
  const fs::path path = error ? fs::path() : fs::canonical(folder / relative, error);
  if (error) refuse(proto, str("has its elements in the file ", location, ", which is not there"));
  const auto [end, differs] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (relative.is_absolute() || end != folder.end())
    refuse(proto, str("has its elements in the file ", location,
                      ", which is not below the model's folder"));
  return path.string();
}

std::uint64_t number_of(const TensorProto& proto, const std::string& text) {
  std::uint64_t number = 0;
  for (const char c : text)
    if (c < '0' || c > '9' || __builtin_mul_overflow(number, std::uint64_t{10}, &number) ||
        __builtin_add_overflow(number, static_cast<std::uint64_t>(c - '0'), &number))
      refuse(proto, str("has elements in another file, at ", text, ", which is no position"));
  return number;
}

Tensor of_other_file(const TensorProto& proto, ElementType type, std::uint64_t count,
                     const ModelFile& file) {
  std::string location;
  std::uint64_t offset = 0, bytes = raw_size(type, count);
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = number_of(proto, entry.value());
    if (entry.key() == "length" && number_of(proto, entry.value()) != bytes)
      refuse(proto,
             str("has ", entry.value(), " bytes in ", location, ", but its sizes make ", bytes));
  }
  const StoredFile stored(external_path(proto, location, file), "load_onnx");
  if (offset > stored.size() || bytes > stored.size() - offset)
    refuse(proto, str("has ", bytes, " bytes at ", offset, " of ", location, ", which has ",
                      stored.size()));
  std::vector<char> data(bytes);
  stored.read(data.data(), offset, bytes);
  return of_raw(proto, type, data.data(), count);
}

}  // namespace

Value read_tensor(const TensorProto& proto, const ModelFile& file) {
  const auto type = static_cast<ElementType>(proto.data_type());
  if (!dtype_of(type)) refuse(proto, str("has elements of the type ", type));
  if (proto.has_segment()) refuse(proto, "is a segment of a tensor");
  const std::uint64_t count = count_of(proto);
  const ModeScope aside({});
  if (proto.data_location() == TensorProto::EXTERNAL)
    return Value::constant(of_other_file(proto, type, count, file), type);
  if (!proto.has_raw_data()) return Value::constant(of_field(proto, type, count), type);
  if (proto.raw_data().size() != raw_size(type, count))
    refuse(proto, str("has ", proto.raw_data().size(), " bytes, but its sizes make ",
                      raw_size(type, count)));
  return Value::constant(of_raw(proto, type, proto.raw_data().data(), count), type);
}

}  // namespace reel::imported
