// examples/training/loss_file.h — LossFile: a CSV file with a row per step.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct LossRow {
  std::int64_t step;
  bool is_traced;
  double loss;
  std::optional<double> accuracy{};  ///< in all rows or in none
};

/// Writes the losses. The file is the same, byte for byte, whether training was interrupted or not.
class LossFile {
 public:
  /// columns: names of the columns behind step and mode.
  /// steps_done: an existing file keeps this many rows; later rows are cut off, as their steps will
  /// be repeated. If 0, the file is begun anew.
  /// last: the result of last() after those steps.
  /// Throws UserError, which names path and reason; also for a file of another training, which has
  /// another header or lacks that last loss.
  LossFile(const std::string& path, const std::string& columns, std::int64_t steps_done,
           const std::string& last);

  /// Appends a row. Errors are reported by close().
  void write(const LossRow& row);
  /// Passes written rows to the operating system, so that they survive a crash of the program.
  void flush();
  /// Throws UserError if a row could not be written; training continues until then.
  void close();

  /// Returns the rows kept and the rows written.
  const std::vector<LossRow>& rows() const { return rows_; }
  /// Returns the loss of the last step as the file has it; empty before the first one.
  const std::string& last() const { return last_; }

 private:
  void keep(const std::string& head, std::int64_t steps_done);
  [[noreturn]] void refuse(const std::string& reason);
  void check(bool is_written);
  [[noreturn]] void fail() const;

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  int error_ = 0;  // the first errno
  std::vector<LossRow> rows_;
  std::string last_;
};
