// core/base/errors.h — the exceptions that Reel throws. A message names the op or loop, the
// argument, the expected value and the value received.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "reel/core/base/compiler.h"
#include "reel/core/base/source.h"
#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Base of all errors that a caller can cause.
///
/// Every error keeps its place in the user's program; for an op run by a graph, the line that
/// recorded it. Copies share their text; copying does not throw.
class Error : public std::runtime_error {
 public:
  /// Walks the stack of this thread, which takes some microseconds.
  explicit Error(const std::string& message);
  Error(const Error&) = default;  // and no move: an error always has its text
  Error& operator=(const Error&) = default;
  /// Returns the message and, if where() knows the line, "at file:line" below it; "in shift at
  /// file:line" if the user called shift and the message does not name it.
  const char* what() const noexcept override;
  /// Returns the message alone.
  const std::string& message() const noexcept;
  /// Returns the line of the user's program as "file:line", the innermost one outside the library;
  /// empty if the program was built without debug information (-g1 is enough).
  std::string where() const;

  /// Adds a line to the message: a loop, iteration or caller that the error passed through.
  void add_line(const std::string& line);
  /// True if the message begins with the name of a function, as in "gather: ...".
  bool names_function() const;
  /// Puts the name of the function that the user called in front of the message. Replaces a name
  /// that stands there.
  void name_function(std::string_view function);
  /// Sets the place to the place of a recorded op, unless an op inside it has done so before. Does
  /// nothing for kNoSource.
  void came_from(SourceId source);

 private:
  struct Text;
  void set_message(std::string message);

  std::shared_ptr<Text> text_;
};

/// Dims or sizes do not match.
class ShapeError : public Error {
 public:
  using Error::Error;
};
/// A dtype is not allowed, or two dtypes differ.
class DTypeError : public Error {
 public:
  using Error::Error;
};
/// A tree has another structure than expected.
class StructureError : public Error {
 public:
  using Error::Error;
};
/// An index is out of range.
class IndexError : public Error {
 public:
  using Error::Error;
};
/// An option or argument has a value that is not allowed.
class ArgumentError : public Error {
 public:
  using Error::Error;
};
/// A trace does not know a value, or must not contain an operation.
class TraceError : public Error {
 public:
  using Error::Error;
};
/// A file or stream could not be read or written.
class IoError : public Error {
 public:
  using Error::Error;
};

/// Returns fn(). Errors of fn carry the name of the function that the user called.
template <class Fn>
decltype(auto) as_function(std::string_view function, Fn&& fn) {
  try {
    return fn();
  } catch (Error& error) {
    error.name_function(function);
    throw;
  }
}

/// A broken invariant of the library: a defect of Reel, not of the calling program.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& what)
      : std::logic_error("reel, internal error: " + what) {}
};

}  // namespace reel
REEL_API_END
