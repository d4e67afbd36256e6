// bench/harness.h — cases that are timed side by side, their table, and their JSON.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reel::bench {

/// One way to do a case's work.
struct Contender {
  std::string name;  ///< the first one is what the case is about; others are called by this
  std::function<void()> run;
};

/// What seconds are counted by.
enum class Clock {
  wall,       ///< for what runs on several threads
  processor,  ///< all threads of this process: for one thread, other programs do not count then
};

/// What is said of a run that takes a second: so many of `unit`, under the name `metric`.
struct Quantity {
  std::string metric, unit;
  double in_a_second;
};
inline Quantity milliseconds() { return {"ms", "ms", 1e3}; }
inline Quantity nanoseconds_per_op(double ops) { return {"ns_per_op", "ns", 1e9 / ops}; }

/// Seconds of a contender's run, turn by turn.
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
/// Options of the program: --json FILE, where to write the rows; --case TEXT, to run only the cases
/// that have TEXT in their names; --seconds S, how long to take for a case.
class Group {
 public:
  /// Prints what this machine is. Starts the program again where its environment lets a peer's
  /// library choose slow kernels or start threads unasked.
  Group(const std::string& name, int argc, char** argv);

  /// Whether a case was asked for. The functions below skip what was not.
  bool wants(const std::string& name) const;

  /// Times the contenders in turns, one, two, one, two, ..., so that a machine that is slow for a
  /// while is slow for all of them. In a turn each runs once, which does not count, and then as
  /// often as fills some milliseconds: as in a program that does the same again and again.
  /// -> for each of them.
  std::vector<Turns> time(const std::vector<Contender>& contenders, Clock clock) const;

  /// Times them. Rows, from medians over all turns: METRIC of the first contender, METRIC_NAME of
  /// each other one, and ratio_to_NAME, first over other: below 1 the first is faster.
  void compare(const std::string& name, const Quantity& quantity,
               const std::vector<Contender>& contenders, Clock clock);

  /// A row from figures that were measured otherwise: their median.
  void report(const std::string& name, const std::string& metric, const std::string& unit,
              std::vector<double> figures);
  void report(const std::string& name, const std::string& metric, const Quantity& quantity,
              const Turns& turns);
  /// A row from the medians of two, one over the other, whose figures are of the same turns. The
  /// quartiles beside it are those of the ratios turn by turn.
  void report_ratio(const std::string& name, const std::string& metric,
                    const std::vector<double>& figures, const std::vector<double>& over);

  /// Writes the JSON; gives what main returns.
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

double seconds_of(const std::function<void()>& run, Clock clock);
double median(std::vector<double> values);

/// A line above the table: how things were measured, or with what.
void note(const std::string& line);

}  // namespace reel::bench
