// Draws programs from seeds and compares their results in all modes. A program with a finding is
// made small and printed as C++.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/isolation.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/relations/relation.h"
#include "reel/tests/fuzz/shrinking/shrinker.h"

namespace reel::fuzz {
namespace {

/// Programs of a child process.
constexpr int kBatch = 50;
/// Limit of a candidate's processor time, in seconds: some smaller programs never end.
constexpr int kSecondsOfCandidate = 10;

struct Options {
  double seconds = 60;
  std::uint64_t seed = 0;
  int count = 0;
  std::string kind;
  bool only_relations = false;
  bool prints_seeds_only = false;
};

/// Returns the checks of a program, or those that can give findings of a kind.
Checks checks_of(const Options& options) {
  return [options](const Program& program, Statistics* statistics) -> std::optional<Finding> {
    if (const Relation* relation = relation_of(options.kind)) {
      return check_relation(*relation, relation->draw(program.seed, all_rules()), statistics);
    }
    if (!options.only_relations)
      if (auto finding = check(program, statistics, options.kind)) return finding;
    return options.kind.empty() ? check_relations(program.seed, all_rules(), statistics)
                                : std::nullopt;
  };
}

void print(const Found& found) {
  std::cout << "seed " << found.seed << ": " << found.finding.kind << "\n  "
            << found.finding.message << std::endl;
}

void report(const Found& found) {
  print(found);
  std::cout << "made smaller:" << std::endl;
  const Relation* const relation = relation_of(found.finding.kind);
  const Checks checks = [&](const Program& program, Statistics* statistics) {
    return relation ? check_relation(*relation, program, statistics)
                    : check(program, statistics, found.finding.kind);
  };
  std::string message = found.finding.message;
  const bool ends = found.finding.kind != "never ends";
  const auto draw = relation ? relation->draw : generate;
  const Program program = shrink(draw(found.seed, all_rules()), [&](const Program& candidate) {
    const auto finding = check_isolated(candidate, checks, ends ? kSecondsOfCandidate : kSeconds);
    if (!finding || finding->kind != found.finding.kind) return false;
    message = finding->message;
    return true;
  });
  std::cout << to_source(program) << "// " << found.finding.kind << ": " << message << "\n"
            << std::endl;
}

/// Checks a batch of programs on each processor, the first one with seed `next`. Adds to `all` and
/// `found`. Returns the seed after the last program; at most `last`.
std::uint64_t check_batches(std::uint64_t next, std::uint64_t last, const Checks& checks,
                            Statistics& all, std::vector<Found>& found) {
  std::mutex mutex;
  std::vector<std::thread> threads;
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < processors && next < last; ++i) {
    const int count = static_cast<int>(std::min<std::uint64_t>(kBatch, last - next));
    threads.emplace_back([&, first = next, count] {
      const auto report = [&](const Found& one) {
        const std::lock_guard lock(mutex);
        found.push_back(one);
      };
      const Statistics done = check_many(first, count, all_rules(), checks, report);
      const std::lock_guard lock(mutex);
      all.programs += done.programs;
      all.compared_with_differences += done.compared_with_differences;
      all.second_compared += done.second_compared;
      all.relations += done.relations;
    });
    next += static_cast<std::uint64_t>(count);
  }
  for (std::thread& thread : threads) thread.join();
  return next;
}

int run(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  const Checks checks = checks_of(options);
  Statistics all;
  int findings = 0;
  std::map<std::string, int> kinds;
  std::uint64_t next = options.seed;
  const std::uint64_t last = options.count ? options.seed + options.count : ~std::uint64_t{0};
  while (options.count ? next < last : Clock::now() < end) {
    std::vector<Found> found;
    next = check_batches(next, last, checks, all, found);
    findings += static_cast<int>(found.size());
    // One program of each kind is enough to read.
    for (const Found& one : found)
      if (++kinds[one.finding.kind] == 1 && !options.prints_seeds_only)
        report(one);
      else if (options.prints_seeds_only)
        print(one);
  }
  for (const auto& [kind, times] : kinds) std::cout << times << " of kind: " << kind << "\n";
  std::cout << "compared with differences: " << all.compared_with_differences
            << ", second gradients: " << all.second_compared << "\n"
            << "relations: " << all.relations << "\n"
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
  app.add_option("--kind", options.kind,
                 "makes the checks that give findings of this kind only; or a relation, by name");
  app.add_flag("--relations", options.only_relations, "checks relations only");
  app.add_flag("--seeds", options.prints_seeds_only,
               "prints seed and message of each finding, and makes no program smaller");
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
