#include "progress.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <iostream>
#include <utility>

#include "text.h"

std::string with_commas(double number) {
  const std::string digits = std::to_string(std::llround(number));
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDOUT_FILENO)), last_(Clock::now()) {}

void ProgressLine::show(const std::string& text) {
  const auto interval = is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(5);
  if (Clock::now() - last_ < interval) return;
  last_ = Clock::now();
  if (!is_terminal_) return print(text);
  std::cout << '\r' << text << "\033[K" << std::flush;
  is_open_ = true;
}

void ProgressLine::print(const std::string& text) {
  std::cout << (is_open_ ? "\r" : "") << text << (is_open_ ? "\033[K\n" : "\n") << std::flush;
  is_open_ = false;
}

LossFile::LossFile(const std::string& path, const std::string& unit)
    : path_(path), file_(std::fopen(path.c_str(), "w")) {
  check(file_ != nullptr);
  if (file_) check(std::fprintf(file_, "step,mode,%s,seconds\n", unit.c_str()) >= 0);
  if (file_) check(std::fflush(file_) == 0);
  if (error_) fail();
}

LossFile::~LossFile() {
  if (file_) std::fclose(file_);
}

void LossFile::write(int step, const char* mode, double loss, double seconds) {
  check(std::fprintf(file_, "%d,%s,%.6g,%.4f\n", step, mode, loss, seconds) >= 0);
}

void LossFile::close() {
  check(std::fclose(std::exchange(file_, nullptr)) == 0);
  if (error_) fail();
}

void LossFile::check(bool is_written) {
  if (!is_written && !error_) error_ = errno;
}

void LossFile::fail() const {
  throw UserError("cannot write " + path_ + ": " + std::strerror(error_));
}
