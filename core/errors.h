// core/errors.h — what Reel throws; every message names the op or loop, the argument, what was
// expected, what came.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "reel/core/source.h"

namespace reel {

/// Base of all errors that a caller can cause.
///
/// Every error keeps the place in the user's program that it is about: of an op that a graph runs,
/// the line that recorded it. Copies share their text and do not throw.
class Error : public std::runtime_error {
 public:
  /// Walks the stack of this thread, which takes some microseconds.
  explicit Error(const std::string& message);
  Error(const Error&) = default;  // and no move: an error always has its text
  Error& operator=(const Error&) = default;
  /// Returns the message and, if where() knows the line, "at file:line" below it.
  const char* what() const noexcept override;
  /// Returns the message alone.
  const std::string& message() const noexcept;
  /// Returns the line of the user's program as "file:line", the innermost one outside the library;
  /// empty if the program was built without debug information (-g1 is enough).
  std::string where() const;

  /// Adds a line to the message: the loop, the iteration, the caller that the error passed.
  void add_line(const std::string& line);
  /// True if the message begins with the name of a function, as in "gather: ...".
  bool names_function() const;
  /// Puts the name of the function that the user called in front of the message, in place of the
  /// name that stands there.
  void name_function(std::string_view function);
  /// Sets the place to the one of a recorded op, unless an op that runs inside of it has done so.
  /// Without effect for kNoSource.
  void came_from(SourceId source);

 private:
  struct Text;
  void set_message(std::string message);

  std::shared_ptr<Text> text_;
};

/// Dims or sizes that do not fit.
class ShapeError : public Error {
 public:
  using Error::Error;
};
/// dtypes that do not fit.
class DTypeError : public Error {
 public:
  using Error::Error;
};
/// A tree that has another structure than expected.
class StructureError : public Error {
 public:
  using Error::Error;
};
/// An index outside its range.
class IndexError : public Error {
 public:
  using Error::Error;
};
/// An option or argument with a value it cannot have.
class ArgumentError : public Error {
 public:
  using Error::Error;
};
/// Something that a trace cannot know or must not hold.
class TraceError : public Error {
 public:
  using Error::Error;
};
/// A file or stream that could not be read or written.
class IoError : public Error {
 public:
  using Error::Error;
};

/// fn(); its errors are those of the function that the user called.
template <class Fn>
decltype(auto) as_function(std::string_view function, Fn&& fn) {
  try {
    return fn();
  } catch (Error& error) {
    error.name_function(function);
    throw;
  }
}

/// A promise of the library to itself that was broken: a defect of Reel, not of its caller.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& what)
      : std::logic_error("reel, internal error: " + what) {}
};

}  // namespace reel
