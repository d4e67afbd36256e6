// tests/fuzz/relations/riding.h — programs of one row that can be applied to a batch of rows as
// they are, since ops match named dims and leave others alone.
#pragma once

#include "reel/tests/fuzz/drafter.h"

namespace reel::fuzz {

/// Returns a program with named dims of one row that rides: its instructions leave a further dim of
/// all arguments alone. The first result, the loss, is a scalar for each row.
Program generate_riding(std::uint64_t seed, const Rules& rules);

/// True if generate_riding() can draw the program's instructions.
bool is_riding(const Program& program);

}  // namespace reel::fuzz
