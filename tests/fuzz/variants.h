// tests/fuzz/variants.h — programs that must have the same gradients as another.
#pragma once

#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

bool has_policies(const Program& program);
/// Loops keep all.
Program without_policies(Program program);

bool has_checkpointed(const Program& program);
/// Functions are called as they are, with the draws that they have under checkpoint(f).
Program without_checkpointed(Program program);

/// A derivative is taken inside.
bool has_derivatives(const Program& program);

bool has_truncate(const Program& program);
/// Scans that have a truncate have this one; 0: none.
Program with_truncate(Program program, int steps);
/// Scans that have a truncate have none: their bodies cut the state. In eager mode only.
Program cut_by_hand(Program program);

}  // namespace reel::fuzz
