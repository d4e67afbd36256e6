#include "reel/frontend/events/protobuf_writer.h"

#include <bit>

namespace reel {
namespace {
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;
}

void ProtobufWriter::varint(std::uint64_t value) {
  for (; value > 127; value >>= 7) message_ += static_cast<char>(value | 128);
  message_ += static_cast<char>(value);
}

void ProtobufWriter::tag(int field, int wire_type) {
  varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type));
}

template <class T>
void ProtobufWriter::fixed(T value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    message_ += static_cast<char>(value >> 8 * i & 255);
}

void ProtobufWriter::integer(int field, std::int64_t value) {
  tag(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
}

void ProtobufWriter::number(int field, double value) {
  tag(field, kFixed64);
  fixed(std::bit_cast<std::uint64_t>(value));
}

void ProtobufWriter::small_number(int field, float value) {
  tag(field, kFixed32);
  fixed(std::bit_cast<std::uint32_t>(value));
}

void ProtobufWriter::bytes(int field, std::string_view value) {
  tag(field, kBytes);
  varint(value.size());
  message_ += value;
}

void ProtobufWriter::numbers(int field, std::span<const double> values) {
  tag(field, kBytes);
  varint(values.size() * sizeof(double));
  for (const double value : values) fixed(std::bit_cast<std::uint64_t>(value));
}

}  // namespace reel
