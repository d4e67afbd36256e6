// tests/fuzz/shrinking/variants.h — variants of a program that must have its gradients.
#pragma once

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

bool has_policies(const Program& program);
/// Returns the program with loops that save all residuals.
Program without_policies(Program program);

bool has_checkpointed(const Program& program);
/// Returns the program with plain calls of f in place of checkpoint(f), with the same draws.
Program without_checkpointed(Program program);

/// True if the program contains a derivative.
bool has_derivatives(const Program& program);

bool has_truncate(const Program& program);
/// Returns the program with this truncate in all scans that have one; 0 removes it.
Program with_truncate(Program program, int steps);
/// Returns the program with bodies that cut the state instead of truncate. For eager mode only.
Program cut_by_hand(Program program);

}  // namespace reel::fuzz
