// frontend/files/json_writer.h — JsonWriter, JSON text written from front to back without a tree.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reel/core/base/str.h"

namespace reel {

/// Returns the text as JSON writes it, in quotes. Returns nullopt if it is not UTF-8.
std::optional<std::string> json_string(std::string_view text);
/// Returns the text as JSON writes it, with U+FFFD in place of bytes that are not UTF-8.
std::string lenient_json_string(std::string_view text);

/// A JSON text that grows at its end. Its destructor allocates nothing, so a failed allocation is
/// an exception; the destructor of nlohmann's tree of values allocates, and ends the process.
///
/// Bytes of strings that are not UTF-8 become U+FFFD. Requires that objects and arrays are closed
/// in the order in which they were opened, and that members of objects have a key.
class JsonWriter {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }

  void key(std::string_view name);
  void value(std::string_view text);
  void value(const std::string& text) { value(std::string_view(text)); }
  void value(const char* text) { value(std::string_view(text)); }
  void value(std::integral auto number) {
    if constexpr (std::same_as<decltype(number), bool>)
      raw(number ? "true" : "false");
    else
      raw(str(number));
  }
  void value(double number);
  void null() { raw("null"); }

  template <class T>
  void member(std::string_view name, const T& of_member) {
    key(name);
    value(of_member);
  }
  /// Writes an array of these values.
  template <class... Ts>
  void array(const Ts&... items) {
    begin_array();
    (value(items), ...);
    end_array();
  }

  /// Returns the text. The writer is empty afterwards.
  std::string take() { return std::exchange(text_, {}); }

 private:
  void separate();
  void open(char bracket);
  void close(char bracket);
  void raw(std::string_view text);

  std::string text_;
  bool has_item_ = false;  ///< the open array or object has an item: a comma comes first
};

}  // namespace reel
