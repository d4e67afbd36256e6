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
      const std::string place = where();
      text_->with_place = place.empty() ? text_->message : text_->message + "\nat " + place;
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
