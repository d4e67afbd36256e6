// tests/occurrences.h — occurrences, which counts a word in a printed text.
#pragma once

#include <string>
#include <string_view>

namespace reel {

/// Returns how often the word stands in the text. Words that overlap count once.
inline int occurrences(std::string_view word, std::string_view text) {
  int result = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size())
    ++result;
  return result;
}

}  // namespace reel
