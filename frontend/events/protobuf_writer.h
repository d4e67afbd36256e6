// frontend/events/protobuf_writer.h — ProtobufWriter, which encodes a message of Protocol Buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reel {

/// Appends fields to a message. A message inside another is a field of bytes.
///
/// Format: https://protobuf.dev/programming-guides/encoding
class ProtobufWriter {
 public:
  /// A field of int32, int64, bool or an enumeration.
  void integer(int field, std::int64_t value);
  void number(int field, double value);
  void small_number(int field, float value);
  /// A field of string, bytes, or a message.
  void bytes(int field, std::string_view value);
  /// A repeated field of double, packed.
  void numbers(int field, std::span<const double> values);

  const std::string& message() const { return message_; }

 private:
  void tag(int field, int wire_type);
  void varint(std::uint64_t value);
  template <class T>
  void fixed(T value);

  std::string message_;
};

}  // namespace reel
