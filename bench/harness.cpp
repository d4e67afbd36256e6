#include "harness.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "machine.h"
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/instruction_set.h"

namespace reel::bench {
namespace {

constexpr double kTurnSeconds = 5e-3;  ///< long compared with the clock's resolution
/// With several threads: long compared with the time until a sleeping processor wakes as fast as in
/// a program that goes on.
constexpr double kThreadsTurnSeconds = 0.1;
constexpr int kFewTurns = 3, kMaxTurns = 400;

/// An instruction set of Reel, and the names of it, or of the highest set below it, in peers.
struct Isa {
  std::string reel, onednn, aten, openblas;
};
const std::vector<Isa> kIsas{{"sse42", "SSE41", "default", "NEHALEM"},
                             {"avx2", "AVX2", "avx2", "HASWELL"},
                             {"avx512", "AVX512_CORE", "avx512", "SKYLAKEX"}};

/// Sets the environment for peers, and the limit `isa` for Reel and for peers unless it is empty;
/// restarts the program, as libraries read the environment before main.
///
/// Debian's OpenBLAS 0.3.21 chooses slow kernels on newer processors, and starts a thread per core,
/// after which every program pays for atomic counts. The machine's own setting is ignored: one
/// machine names kernels for processors without AVX-512.
///
/// Reel's large blocks lie on huge pages. glibc, which peers allocate from, uses huge pages if told
/// to. Not done if peaks are measured, as huge pages round them up.
void set_up_peers(char** argv, bool measures_peaks, const std::string& isa) {
  bool is_complete = true;
  const auto set = [&](const char* variable, const std::string& value) {
    const char* now = std::getenv(variable);
    if (now && now == value) return;
    setenv(variable, value.c_str(), 1);
    is_complete = false;
  };
  set("OPENBLAS_NUM_THREADS", "1");
  for (const Isa& limit : kIsas)
    if (limit.reel == isa) {
      set("REEL_MAX_ISA", limit.reel);
      set("ONEDNN_MAX_CPU_ISA", limit.onednn);
      set("ATEN_CPU_CAPABILITY", limit.aten);
      set("OPENBLAS_CORETYPE", limit.openblas);
    }
  if (isa.empty() && __builtin_cpu_supports("avx512f")) set("OPENBLAS_CORETYPE", "SKYLAKEX");
  if (!measures_peaks) set("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
  if (is_complete) return;
  execv("/proc/self/exe", argv);
  throw Error("cannot start again with an environment for peers");
}

/// Returns a quantile of sorted values, interpolated between two of them.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - std::floor(at));
}

double now(Clock clock) {
  timespec time;
  clock_gettime(clock == Clock::wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void repeat(const std::function<void()>& run, int times) {
  for (int i = 0; i < times; ++i) run();
}

}  // namespace

double seconds_of(const std::function<void()>& run, Clock clock) {
  const double begin = now(clock);
  run();
  return now(clock) - begin;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

void note(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);  // shows each case immediately
}

Group::Group(const std::string& name, int argc, char** argv, std::vector<std::string>* files) {
  CLI::App options("Benchmarks of Reel: " + name);
  if (files) options.add_option("files", *files, "Files to measure");
  options.add_option("--json", json_, "Write the rows to this file");
  options.add_option("--case", only_, "Only cases with this text in their names");
  std::string isa;
  options
      .add_option("--isa", isa,
                  "Limit Reel and its peers to the instruction sets up to this one: sse42, avx2 or "
                  "avx512")
      ->check(CLI::IsMember({"sse42", "avx2", "avx512"}));
  options
      .add_option("--seconds", seconds_,
                  "About this many seconds for each case, or until three turns are done, up to "
                  "five times as long")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  try {
    options.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(options.exit(error));
  }
  set_up_peers(argv, name == "memory", isa);
  if (!isa.empty())
    note(str("instruction set: ", instruction_set(), ", limited by --isa ", isa,
             "; the caches and the clock are those of this processor"));
  for (const std::string& line : describe_machine()) note(line);
}

bool Group::wants(const std::string& name) const { return name.find(only_) != std::string::npos; }

std::vector<Turns> Group::time(const std::vector<Contender>& contenders, Clock clock) const {
  const double turn_seconds = clock == Clock::wall ? kThreadsTurnSeconds : kTurnSeconds;
  std::vector<int> times;
  for (const Contender& contender : contenders) {
    double once = seconds_of(contender.run, clock);  // traces, and fills pools
    if (once < 100 * turn_seconds) once = seconds_of(contender.run, clock);
    times.push_back(std::max(1, static_cast<int>(std::ceil(turn_seconds / once))));
  }
  std::vector<Turns> seconds(contenders.size());
  const double begin = now(Clock::wall);
  const auto goes_on = [&](int turn) {
    const double seconds = now(Clock::wall) - begin;
    return turn == 0 || (turn < kMaxTurns && seconds < (turn < kFewTurns ? 5 : 1) * seconds_);
  };
  for (int turn = 0; goes_on(turn); ++turn)
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      // Not counted: caches and threads are in the state that others left.
      repeat(contenders[i].run, 1 + times[i] / 4);
      seconds[i].push_back(seconds_of([&] { repeat(contenders[i].run, times[i]); }, clock) /
                           times[i]);
    }
  return seconds;
}

void Group::compare(const std::string& name, const Quantity& quantity,
                    const std::vector<Contender>& contenders, Clock clock) {
  if (!wants(name)) return;
  const std::vector<Turns> turns = time(contenders, clock);
  for (std::size_t i = 0; i < contenders.size(); ++i)
    report(name, i ? quantity.metric + "_" + contenders[i].name : quantity.metric, quantity,
           turns[i]);
  for (std::size_t i = 1; i < contenders.size(); ++i)
    report_ratio(name, "ratio_to_" + contenders[i].name, turns[0], turns[i]);
}

void Group::report(const std::string& name, const std::string& metric, const std::string& unit,
                   std::vector<double> figures) {
  if (!wants(name)) return;
  const double value = median(figures);
  add({name, metric, unit, value}, std::move(figures));
}

void Group::report(const std::string& name, const std::string& metric, const Quantity& quantity,
                   const Turns& turns) {
  std::vector<double> figures = turns;
  for (double& figure : figures) figure *= quantity.in_a_second;
  report(name, metric, quantity.unit, std::move(figures));
}

void Group::report_ratio(const std::string& name, const std::string& metric,
                         const std::vector<double>& figures, const std::vector<double>& over) {
  if (!wants(name)) return;
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < figures.size(); ++turn)
    ratios.push_back(figures[turn] / over[turn]);
  add({name, metric, "ratio", median(figures) / median(over)}, std::move(ratios));
}

void Group::add(const Row& row, std::vector<double> figures) {
  constexpr const char* kLine = "{:<50} {:<34} {:>8} {:<6} {:>18} {:>5}\n";
  if (rows_.empty()) {
    note("");
    fmt::print(kLine, "case", "metric", "median", "unit", "quartiles", "turns");
  }
  std::sort(figures.begin(), figures.end());
  const bool is_first = rows_.empty() || rows_.back().name != row.name;
  fmt::print(kLine, is_first ? row.name : "", row.metric, fmt::format("{:.4g}", row.value),
             row.unit,
             fmt::format("{:.4g} .. {:.4g}", quantile(figures, 0.25), quantile(figures, 0.75)),
             figures.size());
  std::fflush(stdout);
  rows_.push_back(row);
}

std::vector<std::pair<std::string, double>> Group::above(const std::string& metric,
                                                         double limit) const {
  std::vector<std::pair<std::string, double>> result;
  for (const Row& row : rows_)
    if (row.metric == metric && row.value > limit) result.emplace_back(row.name, row.value);
  std::ranges::sort(result, std::greater<>(), [](const auto& of) { return of.second; });
  return result;
}

int Group::finish() const {
  if (json_.empty()) return 0;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Row& row : rows_)
    rows.push_back(
        {{"case", row.name}, {"metric", row.metric}, {"unit", row.unit}, {"value", row.value}});
  std::ofstream file(json_);
  if (!(file << rows.dump(1) << std::endl)) throw IoError(str("cannot write ", json_));
  return 0;
}

}  // namespace reel::bench
