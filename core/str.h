// core/str.h — text for messages and files, from anything that prints; the same in every locale.
#pragma once

#include <locale>
#include <sstream>
#include <string>

namespace reel {

/// A string stream that prints as the "C" locale does, whatever std::locale::global was set to:
/// without groups of digits, and with a point in fractions. The library makes no other stream, and
/// an operator<<, whose stream may be a user's, prints numbers by str(). Throws std::bad_alloc if
/// there is no memory for the text, rather than cut it.
class TextStream : public std::ostringstream {
 public:
  TextStream() {
    if (getloc() != std::locale::classic()) imbue(std::locale::classic());
    exceptions(std::ios_base::badbit);
  }
};

/// The arguments printed one after another.
template <class... Args>
std::string str(const Args&... args) {
  TextStream out;
  (out << ... << args);
  return out.str();
}

/// The items printed with a separator between them.
template <class Range>
std::string join(const Range& items, const char* separator = ", ") {
  TextStream out;
  const char* before = "";
  for (const auto& item : items) {
    out << before << item;
    before = separator;
  }
  return out.str();
}

}  // namespace reel
