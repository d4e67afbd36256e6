// core/base/source_lines.h — translates return addresses to lines of code.
#pragma once

#include <string>
#include <vector>

#include "reel/core/base/source.h"
#include "reel/core/base/visibility.h"

namespace reel {

/// A call that led to an op.
struct SourceLine {
  std::string file;  ///< empty if the program was built without debug information (-g, -g1)
  int line = 0;
  std::string function;  ///< without arguments; may be empty
};

/// Returns the calls that led to an op, the innermost first. Leaves out calls of the library and
/// the standard library. Returns nothing if they are not known. Thread-safe.
std::vector<SourceLine> source_lines(SourceId source);
/// Returns the calls as text, one call a line: "model.cpp:12 loss".
REEL_API std::string source_text(SourceId source);
/// Returns the innermost of these calls with a known line, as "file:line"; empty if there is none.
REEL_API std::string place_text(SourceId source);
/// Returns the function of the library that the user's program called to apply an op: "shift", or
/// "Linear" for Linear::operator(). Empty if it is not known, for operators such as +, and for
/// constructors of errors.
std::string called_function(SourceId source);
/// Returns a demangled symbol without arguments and result: "float* loss<int>(Model const&)" ->
/// "loss". Returns "" for a lambda, which has only its line.
std::string short_name(const std::string& name);
/// Returns the first line of source_text(): the innermost call, which applied the op.
REEL_API std::string first_line(const std::string& text);

}  // namespace reel
