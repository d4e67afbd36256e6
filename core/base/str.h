// core/base/str.h — str and join, text for messages and files; equal in every locale.
#pragma once

#include <locale>
#include <sstream>
#include <string>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// A string stream that prints as the "C" locale does, whatever std::locale::global was set to:
/// without digit groups, and with a point in fractions. Every stream of the library must be a
/// TextStream. An operator<< must print numbers by str(), because its stream may be the user's.
/// Throws std::bad_alloc if memory runs out, instead of truncating the text.
class TextStream : public std::ostringstream {
 public:
  TextStream() {
    if (getloc() != std::locale::classic()) imbue(std::locale::classic());
    exceptions(std::ios_base::badbit);
  }
};

/// Returns the arguments printed one after another.
template <class... Args>
std::string str(const Args&... args) {
  TextStream out;
  (out << ... << args);
  return out.str();
}

/// Returns the items printed with a separator between them.
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
REEL_API_END
