// bench/harness.h — times cases side by side, and writes their table and JSON.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace reel::bench {

/// One way to do a case's work.
struct Contender {
  std::string name;  ///< the first one is the subject; names of the others are part of metrics
  std::function<void()> run;
};

/// The clock that counts seconds.
enum class Clock {
  wall,       ///< for work on several threads
  processor,  ///< all threads of this process: excludes other programs; for one thread
};

/// How a time is reported: as metric `metric`, in `unit`. in_a_second: units per second.
struct Quantity {
  std::string metric, unit;
  double in_a_second;
};
inline Quantity milliseconds() { return {"ms", "ms", 1e3}; }
inline Quantity nanoseconds_per_op(double ops) { return {"ns_per_op", "ns", 1e9 / ops}; }

/// Seconds of a contender's runs, by turn.
using Turns = std::vector<double>;

/// A group of benchmarks: one program, one table, one JSON file.
///
///   int main(int argc, char** argv) {
///     Group group("overhead", argc, argv);
///     group.compare("op without tape", nanoseconds_per_op(10'000),
///                   {{"reel", run_ours}, {"libtorch", run_theirs}}, Clock::processor);
///     return group.finish();
///   }
///
/// Options of the program:
/// - --json FILE: where to write the rows
/// - --case TEXT: run only cases with TEXT in their names
/// - --seconds S: how long to run a case
/// - --isa SET: limit Reel and its peers to sse42, avx2 or avx512
/// - FILE...: if the program takes files
class Group {
 public:
  /// Prints a description of the machine. Restarts the program if its environment lets a peer's
  /// library choose slow kernels, start threads unasked, or exceed the limit of --isa. Arguments
  /// other than options are added to `files`; without it, they are errors.
  Group(const std::string& name, int argc, char** argv, std::vector<std::string>* files = nullptr);

  /// Returns true if a case was requested. The functions below skip other cases.
  bool wants(const std::string& name) const;
  /// Returns how long to run a case.
  double seconds() const { return seconds_; }

  /// Times the contenders in turns, one, two, one, two, ..., so that a temporarily slow machine
  /// slows all of them. In a turn each runs once uncounted, and then as often as fills some
  /// milliseconds, like a program that repeats its work. Returns the turns of each contender.
  std::vector<Turns> time(const std::vector<Contender>& contenders, Clock clock) const;

  /// Times the contenders and adds rows with medians over all turns: METRIC of the first contender,
  /// METRIC_NAME of each other one, and ratio_to_NAME, first over other. Below 1 the first is
  /// faster.
  void compare(const std::string& name, const Quantity& quantity,
               const std::vector<Contender>& contenders, Clock clock);

  /// Adds a row with the median of figures measured elsewhere.
  void report(const std::string& name, const std::string& metric, const std::string& unit,
              std::vector<double> figures);
  void report(const std::string& name, const std::string& metric, const Quantity& quantity,
              const Turns& turns);
  /// Adds a row with the ratio of the medians of two series from the same turns. Its quartiles
  /// belong to the ratios by turn.
  void report_ratio(const std::string& name, const std::string& metric,
                    const std::vector<double>& figures, const std::vector<double>& over);

  /// Returns the cases with a row of this metric above a limit, and its values, the largest first.
  std::vector<std::pair<std::string, double>> above(const std::string& metric, double limit) const;

  /// Writes the JSON. Returns the exit code for main.
  int finish() const;

 private:
  struct Row {
    std::string name, metric, unit;
    double value;
  };
  void add(const Row& row, std::vector<double> figures);

  std::string json_, only_;
  double seconds_ = 10;
  std::vector<Row> rows_;
};

/// Returns the seconds of one run.
double seconds_of(const std::function<void()>& run, Clock clock);
double median(std::vector<double> values);

/// Prints a line above the table: how, or with which libraries, cases are measured.
void note(const std::string& line);

}  // namespace reel::bench
