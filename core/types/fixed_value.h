// core/types/fixed_value.h — FixedValue, a value that is the same in every run of a trace.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <iosfwd>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// A number, an enumerator or a text in a tree; or the size or a key of a container.
///
/// Two values are equal if they have the same kind and the same bits: NaN equals NaN, and zeros of
/// different sign differ. Values of different kinds are never equal, whatever their text. The C++
/// type is not part of the value: code that compares values of several types must compare the types
/// as well.
class FixedValue {
 public:
  enum class Kind : char {
    none,
    integer,
    natural,  ///< an unsigned integer
    logical,  ///< a bool
    character,
    number,
    long_number,  ///< a long double
    text,
    size,  ///< of a container
    key,   ///< of a map
  };

  FixedValue() = default;
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  explicit FixedValue(T value) {
    if constexpr (std::is_enum_v<T>)
      *this = of_enumerator(static_cast<std::underlying_type_t<T>>(value));
    else if constexpr (std::is_same_v<T, long double>)
      *this = of_long_double(value);
    else if constexpr (std::is_floating_point_v<T>)
      *this = of_bits(Kind::number, std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    else
      *this = of_integer(value);
  }
  explicit FixedValue(std::string_view text) : FixedValue(Kind::text, text) {}
  static FixedValue of_size(std::size_t size) { return of_bits(Kind::size, size); }
  static FixedValue of_key(std::string_view key) { return {Kind::key, key}; }

  Kind kind() const { return bytes_.empty() ? Kind::none : static_cast<Kind>(bytes_[0]); }
  /// True for the size and the keys of a container.
  bool is_of_container() const { return kind() == Kind::size || kind() == Kind::key; }
  bool is_size(std::size_t size) const { return *this == of_size(size); }
  bool is_key(std::string_view key) const {
    return kind() == Kind::key && std::string_view(bytes_).substr(1) == key;
  }
  /// Returns the kind and the exact value as bytes.
  const std::string& bytes() const { return bytes_; }
  /// Returns the value as messages print it: 3, 0.5, of size 2, key name.
  std::string text() const;

  bool operator==(const FixedValue&) const = default;
  /// Returns true if text() equals `text`.
  bool operator==(std::string_view text) const { return this->text() == text; }

 private:
  FixedValue(Kind kind, std::string_view bytes) {
    bytes_.reserve(1 + bytes.size());
    bytes_ += static_cast<char>(kind);
    bytes_ += bytes;
  }
  static FixedValue of_bits(Kind kind, std::uint64_t bits) {
    char bytes[sizeof bits];
    std::memcpy(bytes, &bits, sizeof bits);
    return {kind, {bytes, sizeof bytes}};
  }
  template <class T>
  static FixedValue of_integer(T value) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t), "an integer in a tree has at most 64 bits");
    constexpr Kind kind = std::is_same_v<T, bool>   ? Kind::logical
                          : std::is_same_v<T, char> ? Kind::character
                          : std::is_unsigned_v<T>   ? Kind::natural
                                                    : Kind::integer;
    return of_bits(kind, static_cast<std::uint64_t>(value));
  }
  /// Stores an enumerator as an integer, whatever its enumeration.
  template <class T>
  static FixedValue of_enumerator(T value) {
    return of_bits(std::is_signed_v<T> ? Kind::integer : Kind::natural,
                   static_cast<std::uint64_t>(value));
  }
  /// Omits the padding bytes of an x87 number, which are undefined.
  static FixedValue of_long_double(long double value) {
    constexpr std::size_t kBytes =
        std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double);
    char bytes[kBytes];
    std::memcpy(bytes, &value, kBytes);
    return {Kind::long_number, {bytes, kBytes}};
  }

  std::string bytes_;  ///< the kind, then the value; empty for none
};

std::ostream& operator<<(std::ostream& out, const FixedValue& value);

}  // namespace reel
REEL_API_END
