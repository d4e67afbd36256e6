#include "reel/frontend/files/json_reader.h"

#include <cstdint>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/frontend/files/utf8.h"

namespace reel {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_high_surrogate(unsigned unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xdc00 && unit < 0xe000; }

void append_utf8(std::string& text, unsigned code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Returns the code of the four digits of \uXXXX. Requires that they are hexadecimal digits.
unsigned code_unit(std::string_view digits) {
  unsigned unit = 0;
  for (int i = 0; i < 4; ++i) unit = unit << 4 | static_cast<unsigned>(hex_digit(digits[i]));
  return unit;
}

}  // namespace

std::string JsonString::text() const {
  if (!has_escapes) return std::string(raw);
  constexpr std::string_view kLetters = "bfnrt", kMeanings = "\b\f\n\r\t";
  std::string result;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      result += raw[i];
      continue;
    }
    const char letter = raw[++i];
    if (letter == 'u') {
      unsigned code = code_unit(raw.substr(i + 1));
      i += 4;
      if (is_high_surrogate(code)) {
        code = 0x10000 + ((code - 0xd800) << 10) + (code_unit(raw.substr(i + 3)) - 0xdc00);
        i += 6;
      }
      append_utf8(result, code);
    } else {
      const std::size_t place = kLetters.find(letter);
      result += place == std::string_view::npos ? letter : kMeanings[place];
    }
  }
  return result;
}

void JsonReader::fail(const std::string& expected) const {
  fail_(at_ < text_.size() ? str("byte ", at_, ": expected ", expected)
                           : str("it ends where ", expected, " is expected"));
  throw InternalError("JsonReader: an error was not thrown");
}

char JsonReader::peek() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::take(char wanted) {
  if (peek() != wanted || at_ == text_.size()) return false;
  ++at_;
  return true;
}

void JsonReader::expect(char wanted) {
  if (!take(wanted)) fail(std::string(1, wanted));
}

void JsonReader::open(char bracket) {
  expect(bracket);
  if (++depth_ > max_depth_) fail("fewer brackets inside each other");
}

void JsonReader::end() {
  peek();
  if (at_ < text_.size()) fail("the end");
}

JsonString JsonReader::string() {
  if (!take('"')) fail("a string");
  const std::size_t begin = at_;
  bool has_escapes = false;
  for (;;) {
    if (at_ == text_.size()) fail("\" at the end of a string");
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte == '"') break;
    if (byte < 0x20) fail("no control character in a string");
    if (byte == '\\') {
      has_escapes = true;
      escape();
    } else if (byte >= 0x80) {
      utf8();
    } else {
      ++at_;
    }
  }
  return {text_.substr(begin, at_++ - begin), has_escapes};
}

void JsonReader::escape() {
  ++at_;
  if (at_ == text_.size() ||
      std::string_view("\"\\/bfnrtu").find(text_[at_]) == std::string_view::npos)
    fail("one of \" \\ / b f n r t u behind \\");
  if (text_[at_++] != 'u') return;
  const unsigned first = four_hex_digits();
  if (is_low_surrogate(first)) fail("the first half of a surrogate pair before the second");
  if (!is_high_surrogate(first)) return;
  if (text_.substr(at_, 2) != "\\u") fail("the second half of a surrogate pair");
  at_ += 2;
  if (!is_low_surrogate(four_hex_digits())) fail("the second half of a surrogate pair");
}

unsigned JsonReader::four_hex_digits() {
  for (std::size_t i = 0; i < 4; ++i, ++at_)
    if (at_ >= text_.size() || hex_digit(text_[at_]) < 0) fail("four hexadecimal digits");
  return code_unit(text_.substr(at_ - 4));
}

void JsonReader::utf8() {
  const Utf8Char next = utf8_at(text_, at_);
  if (!next.is_valid) fail("UTF-8");
  at_ += next.bytes;
}

std::string_view JsonReader::value() {
  const char first = peek();
  const std::size_t begin = at_;
  const auto word = [&](std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) fail("a value");
    at_ += expected.size();
  };
  if (first == '{')
    object([&](const JsonString&) { value(); });
  else if (first == '[')
    array([&] { value(); });
  else if (first == '"')
    string();
  else if (first == 't')
    word("true");
  else if (first == 'f')
    word("false");
  else if (first == 'n')
    word("null");
  else
    number();
  return text_.substr(begin, at_ - begin);
}

bool JsonReader::digits() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  return at_ > begin;
}

void JsonReader::number() {
  const auto next = [&] { return at_ < text_.size() ? text_[at_] : '\0'; };
  if (next() == '-') ++at_;
  const std::size_t begin = at_;
  if (!digits()) fail("a value");
  if (text_[begin] == '0' && at_ > begin + 1) fail("a number without a leading zero");
  if (next() == '.') {
    ++at_;
    if (!digits()) fail("a digit");
  }
  if (next() == 'e' || next() == 'E') {
    ++at_;
    if (next() == '+' || next() == '-') ++at_;
    if (!digits()) fail("a digit");
  }
}

}  // namespace reel
