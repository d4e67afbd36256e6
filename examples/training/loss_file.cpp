#include "loss_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "user_error.h"

namespace {

std::optional<LossRow> parse(const std::string& line) {
  long long step = 0;
  char mode[8] = {};
  double loss = 0, accuracy = 0;
  int end = 0, last = 0;
  const int found = std::sscanf(line.c_str(), "%lld,%7[a-z],%lf%n,%lf%n", &step, mode, &loss, &end,
                                &accuracy, &last);
  if (found < 3 || line.size() != static_cast<std::size_t>(found == 3 ? end : last))
    return std::nullopt;
  LossRow row{step, std::strcmp(mode, "traced") == 0, loss};
  if (found == 4) row.accuracy = accuracy;
  return row;
}

/// Returns the next line; nothing at the end of the file. A last line without a newline was being
/// written, and is ignored.
std::optional<std::string> next_line(std::FILE* file) {
  std::string line;
  for (int c; (c = std::fgetc(file)) != EOF; line += static_cast<char>(c))
    if (c == '\n') return line;
  return std::nullopt;
}

std::string print(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace

LossFile::LossFile(const std::string& path, const std::string& columns, std::int64_t steps_done,
                   const std::string& last)
    : path_(path), last_(last) {
  const std::string head = "step,mode," + columns + '\n';
  std::error_code ignored;
  if (steps_done > 0 && std::filesystem::is_regular_file(path, ignored)) {
    keep(head, steps_done);
    return;
  }
  file_.reset(std::fopen(path.c_str(), "w"));
  check(file_ != nullptr);
  if (file_) check(std::fputs(head.c_str(), file_.get()) >= 0);
  if (file_) check(std::fflush(file_.get()) == 0);
  if (error_) fail();
}

void LossFile::refuse(const std::string& reason) {
  file_.reset();
  throw UserError(path_ + " holds no losses of this training: " + reason +
                  "; name another file with --losses");
}

void LossFile::keep(const std::string& head, std::int64_t steps_done) {
  // Opened once and truncated, not rewritten, so that a kill leaves either the old or the new file.
  file_.reset(std::fopen(path_.c_str(), "r+"));
  check(file_ != nullptr);
  if (error_) fail();
  if (next_line(file_.get()).value_or("") + '\n' != head)
    refuse("its first line is not " + head.substr(0, head.size() - 1));
  auto end = static_cast<off_t>(head.size());
  for (std::optional<std::string> found; (found = next_line(file_.get()));) {
    const std::string& line = *found;
    const std::optional<LossRow> row = parse(line);
    const bool is_whole =
        std::count(line.begin(), line.end(), ',') == std::count(head.begin(), head.end(), ',');
    if (!row || !is_whole || row->step > steps_done) break;
    rows_.push_back(*row);
    end += static_cast<off_t>(line.size() + 1);
  }
  const std::string step = std::to_string(steps_done);
  if (rows_.empty() || rows_.back().step != steps_done)
    refuse("it has no row for step " + step + ", at which the checkpoint is");
  if (const std::string loss = print(rows_.back().loss); loss != last_)
    refuse("at step " + step + " it has a loss of " + loss + ", the checkpoint one of " + last_);
  check(::ftruncate(::fileno(file_.get()), end) == 0 && std::fseek(file_.get(), 0, SEEK_END) == 0);
  if (error_) fail();
}

void LossFile::write(const LossRow& row) {
  rows_.push_back(row);
  last_ = print(row.loss);
  const std::string accuracy = row.accuracy ? ',' + print(*row.accuracy) : "";
  check(std::fprintf(file_.get(), "%lld,%s,%s%s\n", static_cast<long long>(row.step),
                     row.is_traced ? "traced" : "eager", last_.c_str(), accuracy.c_str()) >= 0);
}

void LossFile::flush() { check(std::fflush(file_.get()) == 0); }

void LossFile::close() {
  check(std::fclose(file_.release()) == 0);
  if (error_) fail();
}

void LossFile::check(bool is_written) {
  if (!is_written && !error_) error_ = errno;
}

void LossFile::fail() const {
  throw UserError("cannot write " + path_ + ": " + std::strerror(error_));
}
