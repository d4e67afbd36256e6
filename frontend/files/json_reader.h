// frontend/files/json_reader.h — JsonReader, which reads JSON text in one pass without a tree of
// values.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace reel {

/// A string of a JSON text: the characters between its quotes.
struct JsonString {
  std::string_view raw;
  bool has_escapes = false;

  /// Returns the decoded characters in UTF-8.
  std::string text() const;
};

/// A cursor in a JSON text (RFC 8259). It stores no values, so a reader needs memory only for the
/// text and for the values that it stores itself.
///
/// Reports errors, with the number of the byte, to a function that must throw.
class JsonReader {
 public:
  using Fail = std::function<void(const std::string& reason)>;

  /// Requires `text` and `fail` to outlive the reader. max_depth: the deepest nesting of objects
  /// and arrays.
  JsonReader(std::string_view text, int max_depth, const Fail& fail)
      : text_(text), max_depth_(max_depth), fail_(fail) {}

  /// Calls member(key) for each member of the next object. Requires that member reads the value.
  template <class Member>
  void object(const Member& member) {
    open('{');
    if (!take('}')) {
      do {
        const JsonString key = string();
        expect(':');
        member(key);
      } while (take(','));
      expect('}');
    }
    --depth_;
  }
  /// Calls item() for each item of the next array. Requires that item reads it.
  template <class Item>
  void array(const Item& item) {
    open('[');
    if (!take(']')) {
      do item();
      while (take(','));
      expect(']');
    }
    --depth_;
  }
  /// Reads a string and checks its UTF-8 and its escapes.
  JsonString string();
  /// Reads any value and returns its text.
  std::string_view value();
  /// Fails unless only blanks are left.
  void end();

  /// Returns the first character of the next token; NUL at the end.
  char peek();
  /// Returns the number of bytes read so far.
  std::size_t position() const { return at_; }

 private:
  [[noreturn]] void fail(const std::string& expected) const;
  void open(char bracket);
  bool take(char wanted);
  void expect(char wanted);
  void escape();
  unsigned four_hex_digits();
  void utf8();
  void number();
  bool digits();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0, max_depth_;
  const Fail& fail_;
};

}  // namespace reel
