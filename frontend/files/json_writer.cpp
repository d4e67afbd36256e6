#include "reel/frontend/files/json_writer.h"

#include <charconv>
#include <cmath>

#include "reel/frontend/files/utf8.h"

namespace reel {
namespace {

void append_control(std::string& to, char c) {
  constexpr std::string_view kControls = "\b\f\n\r\t", kLetters = "bfnrt",
                             kDigits = "0123456789abcdef";
  const std::size_t place = kControls.find(c);
  to += '\\';
  if (place != std::string_view::npos) {
    to += kLetters[place];
    return;
  }
  to += "u00";
  to += kDigits[static_cast<unsigned char>(c) >> 4];
  to += kDigits[static_cast<unsigned char>(c) & 15];
}

/// Appends the text in quotes. Returns false, in the middle of it, at bytes that are not UTF-8 and
/// have no replacement.
bool append_string(std::string& to, std::string_view text,
                   std::optional<std::string_view> replacement) {
  to += '"';
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    const char c = text[at];
    if (!next.is_valid) {
      if (!replacement) return false;
      to += *replacement;
    } else if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append_control(to, c);
    } else {
      to += text.substr(at, next.bytes);
    }
    at += next.bytes;
  }
  to += '"';
  return true;
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

std::optional<std::string> json_string(std::string_view text) {
  std::string result;
  if (!append_string(result, text, std::nullopt)) return std::nullopt;
  return result;
}

std::string lenient_json_string(std::string_view text) {
  std::string result;
  append_string(result, text, kReplacement);
  return result;
}

void JsonWriter::separate() {
  if (has_item_) text_ += ',';
  has_item_ = true;
}

void JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  has_item_ = false;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  has_item_ = true;
}

void JsonWriter::raw(std::string_view text) {
  separate();
  text_ += text;
}

void JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  has_item_ = false;
}

void JsonWriter::value(std::string_view text) {
  separate();
  append_string(text_, text, kReplacement);
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();  // JSON has no other numbers
  char digits[32];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), number);
  raw({digits, static_cast<std::size_t>(end - digits)});
}

}  // namespace reel
