// tests/fuzz/policies.h — what loops and functions keep for their gradients: drawn, meant, printed.
#pragma once

#include <string>

#include "reel/core/checkpoint_policy.h"
#include "reel/tests/fuzz/program.h"
#include "reel/tests/fuzz/random.h"

namespace reel::fuzz {

/// Some policy of a loop, which does not keep all.
PolicyForm draw_policy(Random& random);

Checkpoint checkpoint_of(const PolicyForm& policy);
SwapMemory swap_memory_of(const PolicyForm& policy);
/// Empty where there is none.
SavingRule rule_of(const PolicyForm& policy);

/// As C++: "kept(Checkpoint::every(2))"; empty for what the default says.
std::string checkpoint_text(const PolicyForm& policy);
std::string swap_memory_text(const PolicyForm& policy);
std::string rule_text(const PolicyForm& policy);
/// What these texts, and printed calls of checkpoint(f), are made of.
extern const char* const kPolicyHelpers;

}  // namespace reel::fuzz
