#include "reel/core/types/fixed_value.h"

#include <charconv>
#include <ostream>

namespace reel {
namespace {

template <class T>
std::string print(T number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace

std::string FixedValue::text() const {
  if (kind() == Kind::none) return {};
  const std::string_view value = std::string_view(bytes_).substr(1);
  std::uint64_t bits = 0;
  if (value.size() == sizeof bits) std::memcpy(&bits, value.data(), sizeof bits);
  switch (kind()) {
    case Kind::integer:
      return print(static_cast<std::int64_t>(bits));
    case Kind::natural:
    case Kind::logical:
      return print(bits);
    case Kind::character:
      return {static_cast<char>(bits)};
    case Kind::number:
      return print(std::bit_cast<double>(bits));
    case Kind::long_number: {
      long double number = 0;
      std::memcpy(&number, value.data(), value.size());
      return print(number);
    }
    case Kind::size:
      return "of size " + print(bits);
    case Kind::key:
      return "key " + std::string(value);
    default:
      return std::string(value);
  }
}

std::ostream& operator<<(std::ostream& out, const FixedValue& value) { return out << value.text(); }

}  // namespace reel
