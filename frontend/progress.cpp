#include "reel/frontend/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "reel/core/base/quantities.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {

constexpr double kRedraw = 0.1;  // seconds between two updates of the line
/// Seconds over which the rate is averaged: short enough to follow changes, long enough not to
/// flicker.
constexpr double kWindow = 10;

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Prints 1234567 as 1,234,567.
std::string with_commas(std::int64_t number) {
  std::string text = str(number);
  const std::size_t sign = number < 0;
  for (std::size_t at = text.size(); at > 3 + sign;) text.insert(at -= 3, ",");
  return text;
}

std::string print_rate(double rate) {
  return rate < 1000 ? digits_text(rate, 3) : with_commas(std::llround(std::min(rate, 1e18)));
}

/// Prints a duration: 1:05, 2:00:00, 3 days.
std::string duration(double seconds) {
  constexpr double kDay = 86400;
  if (seconds >= 2 * kDay) return fixed_text(std::floor(seconds / kDay), 0) + " days";
  const long whole = std::lround(seconds);
  const auto two_digits = [](long number) { return str(number < 10 ? "0" : "", number); };
  if (whole >= 3600)
    return str(whole / 3600, ':', two_digits(whole / 60 % 60), ':', two_digits(whole % 60));
  return str(whole / 60, ':', two_digits(whole % 60));
}

/// Returns the beginning of a text that takes this number of columns, if each letter takes one.
std::string cut(const std::string& text, int columns) {
  int used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_letter = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;  // UTF-8
    if (begins_letter && used++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

Progress::Progress(std::int64_t total, std::string label, ProgressOptions options)
    : total_(total), label_(std::move(label)), options_(std::move(options)) {
  if (!options_.out) options_.out = &std::cerr;
  if (!options_.clock) options_.clock = system_seconds;
  file_ = options_.out == &std::cerr   ? STDERR_FILENO
          : options_.out == &std::cout ? STDOUT_FILENO
                                       : -1;
  if (!options_.is_terminal) {
    const char* kind = std::getenv("TERM");
    options_.is_terminal =
        file_ >= 0 && ::isatty(file_) && kind && std::string_view(kind) != "dumb";
  }
  shown_ = options_.clock();
}

Progress::~Progress() {
  try {
    if (last_) {
      const std::vector<std::pair<std::string_view, double>> values(last_values_.begin(),
                                                                    last_values_.end());
      show(line(*last_, values, total_ == 0));
    }
    if (is_open_) *options_.out << '\n' << std::flush;
  } catch (...) {  // a destructor must not throw; the stream keeps its error state
  }
}

void Progress::keep(const Moment& now, Values values) {
  last_ = now;
  last_values_.resize(values.size());  // its strings keep their memory
  for (std::size_t i = 0; i < values.size(); ++i) {
    last_values_[i].first = values[i].first;
    last_values_[i].second = values[i].second;
  }
}

void Progress::update(std::int64_t step,
                      std::initializer_list<std::pair<std::string_view, double>> given) {
  if (!*options_.is_terminal) return;
  const Moment now{options_.clock(), step};
  if (!first_) {
    first_ = now;
    recent_.push_back(now);
  }
  const Values values(given.begin(), given.size());
  const bool is_last = total_ > 0 && step == total_;
  if (!is_last && now.time - shown_ < kRedraw) {
    keep(now, values);
    return;
  }
  last_.reset();
  shown_ = now.time;
  show(line(now, values, is_last));
  while (recent_.size() > 1 && now.time - recent_[1].time >= kWindow) recent_.pop_front();
  recent_.push_back(now);
  if (is_last && is_open_) {
    *options_.out << '\n' << std::flush;
    is_open_ = false;
  }
}

std::string Progress::line(const Moment& now, Values values, bool is_last) const {
  std::string text = label_.empty() ? "" : label_ + ": ";
  text += with_commas(now.step);
  if (total_ > 0) text += " of " + with_commas(total_);
  for (const auto& [name, value] : values)
    text += ", " + std::string(name) + ' ' + digits_text(value, 4);

  const double units = rate(is_last ? *first_ : recent_.front(), now);
  if (units > 0) {
    text += ", " + print_rate(units) + ' ' + options_.unit + "/s";
    if (is_last)
      text += ", " + duration(now.time - first_->time);
    else if (now.step < total_)
      text += ", " +
              duration(static_cast<double>(total_ - now.step) * options_.units_per_step / units) +
              " left";
  }
  return text;
}

double Progress::rate(const Moment& from, const Moment& to) const {
  if (!(to.time > from.time)) return 0;
  return static_cast<double>(to.step - from.step) * options_.units_per_step / (to.time - from.time);
}

void Progress::show(const std::string& line) {
  // A terminal wraps the line if its last column is written.
  *options_.out << '\r' + cut(line, columns() - 1) + "\033[K" << std::flush;
  is_open_ = true;
}

void Progress::print(std::string_view line) {
  *options_.out << (is_open_ ? "\r" + std::string(line) + "\033[K\n" : std::string(line) + '\n')
                << std::flush;
  is_open_ = false;
  last_.reset();
}

int Progress::columns() const {
  constexpr int kDefault = 80;
  if (options_.width) return *options_.width;
  winsize size{};
  const bool is_known = file_ >= 0 && ::ioctl(file_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kDefault;
}

}  // namespace reel
