#include "reel/core/base/errors.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "reel/core/base/source_lines.h"

namespace reel {
namespace {

/// Returns the end of the function name at the start of a message; npos if there is none.
std::size_t function_end(std::string_view text) {
  const std::size_t end = text.find(": ");
  const auto is_in_names = [](char c) {
    return c == '_' || c == ' ' || c == ':' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  };
  if (end == std::string_view::npos) return end;
  std::string_view name = text.substr(0, end);
  if (name.ends_with("[]")) name.remove_suffix(2);  // operator[], but no type such as f32[time]
  return std::all_of(name.begin(), name.end(), is_in_names) ? end : std::string_view::npos;
}

/// Returns true if the names at the start of a message, or its first line if there are none, hold
/// the function or the type that it belongs to. "assert_that: transducer_loss: ..." has two names.
bool mentions(std::string_view message, std::string_view function) {
  std::size_t length = 0;
  for (std::size_t end = 0; (end = function_end(message.substr(length))) != std::string_view::npos;)
    length += end + 2;
  message = message.substr(0, length ? length : message.find('\n'));
  for (std::size_t at = 0; at < function.size();) {
    const std::size_t next = std::min(function.find("::", at), function.size());
    if (message.find(function.substr(at, next - at)) != std::string_view::npos) return true;
    at = next + 2;
  }
  return false;
}

/// Returns true if a line that was added to the message names the function: "in Adam::update of w".
/// Debug information may call an inlined function "update".
bool has_line_of(std::string_view message, const std::string& function) {
  if (message.find(" of " + function + " at ") != std::string_view::npos) return true;
  constexpr std::string_view kIn = "\nin ";
  for (std::size_t at = 0; (at = message.find(kIn, at)) != std::string_view::npos;) {
    at += kIn.size();
    const std::string_view named = message.substr(at, message.find_first_of(" \n", at) - at);
    if (named == function || named.ends_with("::" + function)) return true;
  }
  return false;
}

/// Returns a last line of the message: the user's line, and the function called there if the
/// message names another one.
std::string place_line(std::string_view message, SourceId source) {
  const std::string place = place_text(source);
  if (place.empty()) return {};
  const std::string function = called_function(source);
  const bool is_named = mentions(message, function) || has_line_of(message, function);
  return function.empty() || is_named ? "\nat " + place : "\nin " + function + " at " + place;
}

/// Returns the caller's place; kNoSource if there is no memory for it.
SourceId place_of_caller() noexcept {
  try {
    return source_here();
  } catch (...) {
    return kNoSource;
  }
}

}  // namespace

struct Error::Text {
  std::string message;
  SourceId source = kNoSource;
  bool is_of_recorded_op = false;
  std::once_flag once;
  std::string with_place;  // made by the first what(): reading debug information is slow

  Text(std::string message, SourceId source, bool is_of_recorded_op)
      : message(std::move(message)), source(source), is_of_recorded_op(is_of_recorded_op) {}
};

Error::Error(const std::string& message)
    : std::runtime_error(message),
      text_(std::make_shared<Text>(message, place_of_caller(), false)) {}

const char* Error::what() const noexcept {
  try {
    std::call_once(text_->once, [&] {
      text_->with_place = text_->message + place_line(text_->message, text_->source);
    });
    return text_->with_place.c_str();
  } catch (...) {
    return text_->message.c_str();
  }
}

const std::string& Error::message() const noexcept { return text_->message; }

std::string Error::where() const { return place_text(text_->source); }

void Error::set_message(std::string message) {
  text_ = std::make_shared<Text>(std::move(message), text_->source, text_->is_of_recorded_op);
}

void Error::add_line(const std::string& line) { set_message(message() + '\n' + line); }

bool Error::names_function() const { return function_end(message()) != std::string_view::npos; }

void Error::name_function(std::string_view function) {
  std::string_view text = message();
  if (names_function()) text.remove_prefix(function_end(text));
  const char* separator = text.starts_with(": ") ? "" : ": ";
  set_message(std::string(function) + separator + std::string(text));
}

void Error::came_from(SourceId source) {
  if (source == kNoSource || text_->is_of_recorded_op) return;
  text_ = std::make_shared<Text>(text_->message, source, true);
}

}  // namespace reel
