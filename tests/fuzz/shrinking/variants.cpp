#include "reel/tests/fuzz/shrinking/variants.h"

#include <set>
#include <string>
#include <utility>

#include "reel/tests/fuzz/program/families.h"

namespace reel::fuzz {
namespace {

/// True for loops, and for expressions that contain loops, if they have a policy.
bool has_policy_of_loops(const Instruction& in) {
  return in.control != Control::call && in.policy != PolicyForm{};
}

/// Calls fn(instruction) for all instructions, also of inner blocks.
template <class P, class Fn>
void for_each_instruction(P& program, Fn&& fn) {
  for_each_block(program.main, [&](auto& block) {
    for (auto& instruction : block.body) fn(instruction);
  });
}

template <class Says>
bool any(const Program& program, Says&& says) {
  bool result = false;
  for_each_instruction(program, [&](const Instruction& in) { result = result || says(in); });
  return result;
}

}  // namespace

bool has_policies(const Program& program) { return any(program, has_policy_of_loops); }

Program without_policies(Program program) {
  for_each_instruction(program, [](Instruction& in) {
    if (has_policy_of_loops(in)) in.policy = {};
  });
  return program;
}

bool has_checkpointed(const Program& program) {
  return any(program, [](const Instruction& in) { return in.policy.is_checkpointed; });
}

Program without_checkpointed(Program program) {
  for_each_instruction(program, [](Instruction& in) {
    if (in.control == Control::call) in.policy = {};
  });
  return program;
}

bool has_derivatives(const Program& program) {
  static const auto& names = *[] {
    auto* const all = new std::set<std::string>;
    for (const Rule* const rule : jacobian_rules()) all->insert(rule->name());
    return all;
  }();
  return any(program, [](const Instruction& in) {
    return in.control == Control::derivative || names.contains(in.rule->name());
  });
}

bool has_truncate(const Program& program) {
  return any(program, [](const Instruction& in) { return in.loop.truncate > 0; });
}

Program with_truncate(Program program, int steps) {
  for_each_instruction(program, [&](Instruction& in) {
    if (in.loop.truncate) in.loop.truncate = steps;
  });
  return program;
}

Program cut_by_hand(Program program) {
  for_each_instruction(program, [](Instruction& in) { in.loop.is_cut_by_hand = in.loop.truncate; });
  return without_policies(without_checkpointed(std::move(program)));
}

}  // namespace reel::fuzz
