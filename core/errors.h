// core/errors.h — what Reel throws; every message names the op or loop, the argument, what was
// expected, what came.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace reel {

/// Base of all errors that a caller can cause.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  const char* what() const noexcept override {
    return text_ ? text_->c_str() : std::runtime_error::what();
  }
  /// One more line of the message: where it happened, said by what is left on its way out.
  void add_line(const std::string& line) {
    text_ = std::make_shared<const std::string>(std::string(what()) + '\n' + line);
  }

 private:
  std::shared_ptr<const std::string> text_;  // copying an exception must not throw
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

/// A promise of the library to itself that was broken: a defect of Reel, not of its caller.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& what)
      : std::logic_error("reel, internal error: " + what) {}
};

}  // namespace reel
