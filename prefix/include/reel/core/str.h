// core/str.h — text for messages, from anything that prints.
#pragma once

#include <sstream>
#include <string>

namespace reel {

/// The arguments printed one after another.
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

/// The items printed with a separator between them.
template <class Range>
std::string join(const Range& items, const char* separator = ", ") {
  std::ostringstream out;
  const char* before = "";
  for (const auto& item : items) {
    out << before << item;
    before = separator;
  }
  return out.str();
}

}  // namespace reel
