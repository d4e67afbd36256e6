// frontend/files/utf8.h — utf8_at, the characters of a text that may not be UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace reel {

/// A character of UTF-8; or, if it is not valid, the bytes that could have begun one.
struct Utf8Char {
  std::size_t bytes;
  bool is_valid;
};

/// Returns the character that begins at `at`: the shortest form of a code that may stand alone.
/// Requires at < text.size().
inline Utf8Char utf8_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, true};
  if (first < 0xc2 || first > 0xf4) return {1, false};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  unsigned least = 0x80, most = 0xbf;  // of the second byte
  if (first == 0xe0) least = 0xa0;
  if (first == 0xed) most = 0x9f;
  if (first == 0xf0) least = 0x90;
  if (first == 0xf4) most = 0x8f;
  for (std::size_t i = 1; i < size; ++i) {
    if (at + i == text.size() || byte(i) < least || byte(i) > most) return {i, false};
    least = 0x80;
    most = 0xbf;
  }
  return {size, true};
}

}  // namespace reel
