// tests/fuzz/policies.h — policies of loops and functions: drawing, applying and printing them.
#pragma once

#include <string>

#include "reel/core/options/checkpoint_policy.h"
#include "reel/tests/fuzz/program/program.h"
#include "reel/tests/fuzz/random.h"

namespace reel::fuzz {

/// Draws a policy of a loop that differs from the default.
PolicyForm draw_policy(Random& random);

Checkpoint checkpoint_of(const PolicyForm& policy);
SwapMemory swap_memory_of(const PolicyForm& policy);
/// Returns the rule of a policy; empty if it has none.
SavingRule rule_of(const PolicyForm& policy);

/// Return C++ code, as in "kept(Checkpoint::every(2))"; empty for a default.
std::string checkpoint_text(const PolicyForm& policy);
std::string swap_memory_text(const PolicyForm& policy);
std::string rule_text(const PolicyForm& policy);
/// The definitions that these texts, and printed calls of checkpoint(f), use.
extern const char* const kPolicyHelpers;

}  // namespace reel::fuzz
