// tests/fuzz/relations/coupling.h — whether a loop's body treats its entries one by one.
#pragma once

#include <vector>

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// True if a block of the instruction takes elements along any of these dims together.
bool couples_entries(const Program& program, const Instruction& in, const std::vector<int>& dims);

}  // namespace reel::fuzz
