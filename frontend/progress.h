// frontend/progress.h — Progress, a progress line for long loops on a terminal.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Options of Progress.
struct ProgressOptions {
  std::string unit = "steps";          ///< the unit of the rate
  double units_per_step = 1;           ///< units that one step counts for
  std::ostream* out = nullptr;         ///< nullptr: std::cerr. Must outlive the Progress
  std::optional<bool> is_terminal{};   ///< default: asks the system
  std::optional<int> width{};          ///< default: the terminal's columns
  std::function<double()> clock = {};  ///< seconds since any moment; default: the system's
};

/// Shows a line about a loop: steps, the caller's numbers, a rate, and the remaining time.
///
///   Progress progress(steps, "training");
///   for (int step = 1; step <= steps; ++step) progress.update(step, {{"loss", train()}});
///
///   training: 1,234 of 7,500, loss 2.341, 56.2 steps/s, 1:51 left
///
/// On a terminal the line is overwritten at most ten times a second, and stays at the end with the
/// values of the last step. If the output is no terminal, for example a log, there is no line. A
/// call that shows nothing takes well under a microsecond. Each update is one write, with the
/// control codes for carriage return and clear-to-end only, so the terminal needs no restoring if
/// the program is killed. Not thread-safe: use a Progress from one thread.
class Progress {
 public:
  /// total: the number of steps, or 0 if unknown. label: a name of the loop.
  explicit Progress(std::int64_t total, std::string label = {}, ProgressOptions options = {});
  /// Shows the last step and ends the line. Never throws.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Reports that `step` steps are done. A loop that resumes begins with the number of steps that
  /// were done before.
  void update(std::int64_t step,
              std::initializer_list<std::pair<std::string_view, double>> values = {});
  /// Prints a permanent line above the progress line; in a log too.
  void print(std::string_view line);

 private:
  struct Moment {
    double time;
    std::int64_t step;
  };
  using Values = std::span<const std::pair<std::string_view, double>>;

  /// is_last: no steps are left; the rate is then the average over all steps.
  std::string line(const Moment& now, Values values, bool is_last) const;
  void keep(const Moment& now, Values values);
  /// Returns units per second between two moments; 0 if unknown.
  double rate(const Moment& from, const Moment& to) const;
  void show(const std::string& line);
  int columns() const;

  std::int64_t total_;
  std::string label_;
  ProgressOptions options_;
  int file_ = -1;  // descriptor of the terminal
  bool is_open_ = false;
  double shown_;               // time of the last output
  std::deque<Moment> recent_;  // moments within the time window of the rate
  std::optional<Moment> first_;
  std::optional<Moment> last_;  // last step, if it is not shown yet
  std::vector<std::pair<std::string, double>> last_values_;
};

}  // namespace reel
REEL_API_END
