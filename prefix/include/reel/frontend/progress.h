// frontend/progress.h — Progress, how far a long loop has come, on the screen.
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

namespace reel {

struct ProgressOptions {
  std::string unit = "steps";          ///< what the rate counts
  double units_per_step = 1;           ///< so many of them
  std::ostream* out = nullptr;         ///< nullptr: std::cerr. It must outlive the Progress
  std::optional<bool> is_terminal{};   ///< by default, whether out is one
  std::optional<int> width{};          ///< columns; by default, those of the terminal
  std::function<double()> clock = {};  ///< seconds since some moment; by default, of the system
};

/// A line about a loop: steps, numbers of the caller's, a rate, the time that is left.
///
///   Progress progress(steps, "training");
///   for (int step = 1; step <= steps; ++step) progress.update(step, {{"loss", train()}});
///
///   training: 1,234 of 7,500, loss 2.341, 56.2 steps/s, 1:51 left
///
/// On a terminal the line is written over, at most ten times a second, and stays at the end, as it
/// was at the last step; elsewhere, in a log, there is none. A call that shows nothing takes well
/// under a microsecond. Of the terminal it asks no more than to go back in a line and clear its
/// rest, in one write each time: whatever ends the program leaves nothing to be restored. A
/// Progress belongs to one thread.
class Progress {
 public:
  /// total: steps, or 0 when that is not known. label: what the loop does.
  explicit Progress(std::int64_t total, std::string label = {}, ProgressOptions options = {});
  /// Ends the line, which is that of the last step.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// So many steps are done; a loop that goes on where another stopped begins with its number.
  void update(std::int64_t step,
              std::initializer_list<std::pair<std::string_view, double>> values = {});
  /// A line that stays, above the one about the loop; in a log too.
  void print(std::string_view line);

 private:
  struct Moment {
    double time;
    std::int64_t step;
  };
  using Values = std::span<const std::pair<std::string_view, double>>;

  /// is_last: no steps are left; the rate is then that of all.
  std::string line(const Moment& now, Values values, bool is_last) const;
  void keep(const Moment& now, Values values);
  /// Units per second between two moments; 0 when it cannot be said.
  double rate(const Moment& from, const Moment& to) const;
  void show(const std::string& line);
  int columns() const;

  std::int64_t total_;
  std::string label_;
  ProgressOptions options_;
  int file_ = -1;  // of the terminal
  bool is_open_ = false;
  double shown_;               // when
  std::deque<Moment> recent_;  // of the time that the rate is taken over
  std::optional<Moment> first_;
  std::optional<Moment> last_;  // step, if it is not shown
  std::vector<std::pair<std::string, double>> last_values_;
};

}  // namespace reel
