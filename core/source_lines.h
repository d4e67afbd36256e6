// core/source_lines.h — sources as lines of code.
#pragma once

#include <string>
#include <vector>

#include "reel/core/source.h"

namespace reel {

/// A call on the way to an op.
struct SourceLine {
  std::string file;  ///< empty where the program was built without debug information (-g, -g1)
  int line = 0;
  std::string function;  ///< without its arguments; may be empty
};

/// The calls that led to an op, the innermost first, as far as they are the user's: the library's
/// own and the standard library's are left out. Empty where nothing is known.
std::vector<SourceLine> source_lines(SourceId source);
/// The same as text, a call in a line: "model.cpp:12 loss".
std::string source_text(SourceId source);
/// Returns the innermost of these calls whose line is known, as "file:line"; empty if there is none.
std::string place_text(SourceId source);
/// Of a demangled symbol, without what it takes and returns: "float* loss<int>(Model const&)" ->
/// "loss"; a lambda has no name beside its line: empty.
std::string short_name(const std::string& name);
/// Of such a text the first line: the innermost call, that of the op itself.
std::string first_line(const std::string& text);

}  // namespace reel
