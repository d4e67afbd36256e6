// Draws programs from seeds and compares their results in all modes. A program with a finding is
// made small and printed as C++.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>

#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/isolation.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/shrinking/shrinker.h"

namespace reel::fuzz {
namespace {

constexpr int kBatch = 200;
/// Limit of a candidate's processor time, in seconds: some smaller programs never end.
constexpr int kSecondsOfCandidate = 10;

struct Options {
  double seconds = 60;
  std::uint64_t seed = 0;
  int count = 0;
  std::string kind;
};

void report(const Found& found) {
  const Checks checks = [&](const Program& program, Statistics* statistics) {
    return check(program, statistics, found.finding.kind);
  };
  std::cout << "seed " << found.seed << ": " << found.finding.kind << "\n  "
            << found.finding.message << "\nmade smaller:" << std::endl;
  std::string message = found.finding.message;
  const bool ends = found.finding.kind != "never ends";
  const Program program = shrink(generate(found.seed, all_rules()), [&](const Program& candidate) {
    const auto finding = check_isolated(candidate, checks, ends ? kSecondsOfCandidate : kSeconds);
    if (!finding || finding->kind != found.finding.kind) return false;
    message = finding->message;
    return true;
  });
  std::cout << to_source(program) << "// " << found.finding.kind << ": " << message << "\n"
            << std::endl;
}

int run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  const Checks checks = [&](const Program& program, Statistics* statistics) {
    return check(program, statistics, options.kind);
  };
  Statistics all;
  int findings = 0;
  std::map<std::string, int> kinds;
  std::uint64_t next = options.seed;
  while (options.count ? next < options.seed + options.count : Clock::now() < end) {
    const int batch =
        options.count
            ? static_cast<int>(std::min<std::uint64_t>(kBatch, options.seed + options.count - next))
            : kBatch;
    std::vector<Found> found;
    const Statistics done = check_many(next, batch, all_rules(), checks,
                                       [&](const Found& one) { found.push_back(one); });
    next += batch;
    all.programs += done.programs;
    all.compared_with_differences += done.compared_with_differences;
    all.second_compared += done.second_compared;
    findings += static_cast<int>(found.size());
    // One program of each kind is enough to read.
    for (const Found& one : found)
      if (++kinds[one.finding.kind] == 1) report(one);
  }
  for (const auto& [kind, times] : kinds) std::cout << times << " of kind: " << kind << "\n";
  std::cout << "compared with differences: " << all.compared_with_differences
            << ", second gradients: " << all.second_compared << "\n"
            << all.programs << " programs, " << findings << " findings" << std::endl;
  return findings ? 1 : 0;
}

}  // namespace
}  // namespace reel::fuzz

int main(int argc, char** argv) {
  using namespace reel::fuzz;
  CLI::App app(
      "Draws programs from seeds and checks that every mode gives the same values and gradients");
  Options options;
  std::uint64_t program = 0, printed = 0;
  app.add_option("--seconds", options.seconds, "for so long")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed, "of the first program; the next one has the next number");
  app.add_option("--count", options.count, "so many programs, however long that takes")
      ->check(CLI::PositiveNumber);
  app.add_option("--kind", options.kind, "makes the checks that give findings of this kind only");
  const auto* alone =
      app.add_option("--program", program, "prints the program of this seed, and checks it alone");
  const auto* print = app.add_option("--print", printed, "prints the program of this seed");
  CLI11_PARSE(app, argc, argv);
  if (*print) {
    std::cout << to_source(generate(printed, all_rules()));
    return 0;
  }
  if (*alone) {
    std::cout << to_source(generate(program, all_rules())) << std::endl;
    options.seed = program;
    options.count = 1;
  }
  return run(options);
}
