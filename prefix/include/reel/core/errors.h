// core/errors.h — what Reel throws; every message names the op or loop, the argument, what was
// expected, what came.
#pragma once

#include <algorithm>
#include <cctype>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

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
  /// The message begins with the name of a function, "gather: ".
  bool names_function() const { return function_end(what()) != std::string_view::npos; }
  /// The message is one of the function that the user called: its name comes instead of that of
  /// what the function is made of, or in front.
  void name_function(std::string_view function) {
    std::string_view text = what();
    if (names_function()) text.remove_prefix(function_end(text));
    const char* separator = text.starts_with(": ") ? "" : ": ";
    text_ =
        std::make_shared<const std::string>(std::string(function) + separator + std::string(text));
  }

 private:
  /// Where the name ends that a message begins with; npos if it begins with something else.
  static std::size_t function_end(std::string_view text) {
    const std::size_t end = text.find(": ");
    const auto is_in_names = [](char c) {
      return c == '_' || c == ' ' || c == ':' || std::isalnum(static_cast<unsigned char>(c));
    };
    const bool is_name =
        end != std::string_view::npos && std::all_of(text.begin(), text.begin() + end, is_in_names);
    return is_name ? end : std::string_view::npos;
  }

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
