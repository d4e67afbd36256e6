// progress.h — how training goes: a line on the screen, and a file of losses.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

/// 12345.6 as 12,346.
std::string with_commas(double number);

/// One line that is written over on a terminal; elsewhere a line every few seconds.
class ProgressLine {
 public:
  ProgressLine();
  /// Shows the text, unless the last one was shown a moment ago.
  void show(const std::string& text);
  /// Shows it and keeps it.
  void print(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  bool is_terminal_, is_open_ = false;
  Clock::time_point last_;
};

/// A CSV file with a row for every step.
class LossFile {
 public:
  /// unit: what losses are measured in, for the head of the table. Throws UserError, which names
  /// path and reason.
  LossFile(const std::string& path, const std::string& unit);
  ~LossFile();
  LossFile(const LossFile&) = delete;
  LossFile& operator=(const LossFile&) = delete;

  void write(int step, const char* mode, double loss, double seconds);
  /// Throws UserError when any of the rows could not be written: training goes on until then.
  void close();

 private:
  void check(bool is_written);
  [[noreturn]] void fail() const;

  std::string path_;
  std::FILE* file_;
  int error_ = 0;  // the first errno
};
