// core/base/key_bytes.h — KeyBytes, keys of numbers and texts, which no text can forge.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace reel {

/// A sequence of numbers, texts and pointers as bytes. Each item encodes its own length.
///
/// Two keys are equal only if the same items were added in the same order. Requires that each item
/// decides which kind of item follows.
class KeyBytes {
 public:
  KeyBytes& number(std::uint64_t n) {
    for (; n >= 128; n /= 128) bytes_ += static_cast<char>(n % 128 + 128);
    bytes_ += static_cast<char>(n);
    return *this;
  }
  template <class Enum>
  requires std::is_enum_v<Enum> KeyBytes& number(Enum n) {
    return number(static_cast<std::uint64_t>(n));
  }
  KeyBytes& text(std::string_view text) {
    number(text.size());
    bytes_ += text;
    return *this;
  }
  KeyBytes& pointer(const void* p) {
    bytes_.append(reinterpret_cast<const char*>(&p), sizeof p);  // NOLINT: its own bytes
    return *this;
  }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace reel
