// loss_file.h — LossFile, a CSV file with a row for every step.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

struct LossRow {
  std::int64_t step;
  bool is_traced;
  double loss;
  std::optional<double> accuracy{};  ///< in all rows or in none
};

/// The file is the same, byte for byte, whether training was interrupted or not.
class LossFile {
 public:
  /// columns: what is in a row behind step and mode, for the head of the table. steps_done: the
  /// rows of so many steps are kept from a file that is there, those behind them, of steps that
  /// will be taken again, are cut off; at 0 the file is begun afresh. last: what last() gave after
  /// those steps. Throws UserError, which names path and reason, also for a file of another
  /// training: one with another head, or without that last loss.
  LossFile(const std::string& path, const std::string& columns, std::int64_t steps_done,
           const std::string& last);
  ~LossFile();
  LossFile(const LossFile&) = delete;
  LossFile& operator=(const LossFile&) = delete;

  void write(const LossRow& row);
  /// Hands over to the system what was written: from then on it is safe from the end of the
  /// program.
  void flush();
  /// Throws UserError when any of the rows could not be written: training goes on until then.
  void close();

  /// Those kept and those written.
  const std::vector<LossRow>& rows() const { return rows_; }
  /// The loss of the last step as the file says it; empty before the first one.
  const std::string& last() const { return last_; }

 private:
  void keep(const std::string& head, std::int64_t steps_done);
  [[noreturn]] void refuse(const std::string& reason);
  void check(bool is_written);
  [[noreturn]] void fail() const;

  std::string path_;
  std::FILE* file_ = nullptr;
  int error_ = 0;  // the first errno
  std::vector<LossRow> rows_;
  std::string last_;
};
