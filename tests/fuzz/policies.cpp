#include "reel/tests/fuzz/policies.h"

namespace reel::fuzz {

PolicyForm draw_policy(Random& random) {
  PolicyForm policy;
  const int way = random.below(4);
  if (way < 2)
    policy.steps = random.between(1, 3);
  else if (way == 2)
    policy.bytes = random.chance(30) ? 1 : random.between(1, 8) * 100;
  if (random.chance(35)) policy.letters = random.below(4);
  policy.swaps = random.chance(30);
  if (policy == PolicyForm{}) policy.letters = random.below(4);
  return policy;
}

SavingRule rule_of(const PolicyForm& policy) {
  if (policy.letters < 0) return {};
  return [letters = policy.letters](const StepValue& value) {
    return Saving((value.op[0] + value.name.size() + letters) % 4);
  };
}

Checkpoint checkpoint_of(const PolicyForm& policy) {
  const Checkpoint checkpoint = policy.steps   ? Checkpoint::every(policy.steps)
                                : policy.bytes ? Checkpoint::budget(policy.bytes)
                                               : Checkpoint();
  return policy.letters < 0 ? checkpoint : checkpoint.where(rule_of(policy));
}

SwapMemory swap_memory_of(const PolicyForm& policy) {
  return policy.swaps ? SwapMemory(Spill{.bytes_in_memory = 1}) : SwapMemory();
}

std::string rule_text(const PolicyForm& policy) {
  return policy.letters < 0 ? "" : "by_letter(" + std::to_string(policy.letters) + ")";
}

std::string checkpoint_text(const PolicyForm& policy) {
  std::string text = policy.steps   ? "Checkpoint::every(" + std::to_string(policy.steps) + ")"
                     : policy.bytes ? "Checkpoint::budget(" + std::to_string(policy.bytes) + ")"
                                    : "Checkpoint()";
  if (policy.letters >= 0) text += ".where(" + rule_text(policy) + ")";
  return text == "Checkpoint()" ? "" : "kept(" + text + ")";
}

std::string swap_memory_text(const PolicyForm& policy) {
  return policy.swaps ? "kept(SwapMemory(Spill{.bytes_in_memory = 1}))" : "";
}

const char* const kPolicyHelpers = R"(
/// While this is false, loops keep all, and functions under checkpoint(f) are called as they are.
bool has_policies = true;

template <class Policy>
Policy kept(const Policy& policy) {
  return has_policies ? policy : Policy();
}

/// By the first letter of the op that makes a value.
SavingRule by_letter(int letters) {
  return [letters](const StepValue& value) {
    return Saving((value.op[0] + value.name.size() + letters) % 4);
  };
}

template <class F>
State checkpointed(F f, const State& state, const SavingRule& rule = {}) {
  return has_policies ? checkpoint(f, rule)(state) : f(state);
}
)";

}  // namespace reel::fuzz
