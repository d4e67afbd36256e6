// tests/fuzz/program/programs_with.h — helpers of the fuzzer's tests: programs with an injected
// defect.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/isolation.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/shrinking/shrinker.h"

namespace reel::fuzz {

inline Rules with(const Rule* rule) {
  Rules rules = all_rules();
  rules.push_back(rule);
  return rules;
}

/// True if `says` is true for an instruction, also of an inner block.
template <class Says>
bool has_instruction(const Program& program, Says&& says) {
  bool result = false;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body) result = result || says(in);
  });
  return result;
}

inline bool uses(const Program& program, const Rule* rule) {
  return has_instruction(program, [&](const Instruction& in) { return in.rule == rule; });
}

/// Draws programs with the rule until one has a finding of this kind, and returns it, made small.
/// The test fails if none of 2,000 has one. Candidates run in child processes, since they may never
/// end.
inline std::optional<Program> find(const Rule* rule, const std::string& kind,
                                   const Checks& checks) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Program program = generate(seed, with(rule));
    if (!uses(program, rule)) continue;
    const auto finding = checks(program, nullptr);
    if (!finding || finding->kind != kind) continue;
    return shrink(program, [&](const Program& candidate) {
      const auto other = check_isolated(candidate, checks, 1);
      return other && other->kind == kind;
    });
  }
  ADD_FAILURE() << "no program of 2,000 shows the defect";
  return {};
}

/// Expects a program of at most `most` instructions: by default the rule's instruction and the sum
/// that makes a loss of it.
inline void expect_small(const Program& program, const Rule* rule, int most = 3,
                         int most_inputs = 2) {
  EXPECT_TRUE(uses(program, rule)) << to_source(program);
  EXPECT_LE(count_instructions(program), most) << to_source(program);
  EXPECT_LE(std::ssize(program.inputs), most_inputs) << to_source(program);
}

}  // namespace reel::fuzz
