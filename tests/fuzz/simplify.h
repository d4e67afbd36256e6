// tests/fuzz/simplify.h — the parts of a program that nothing depends on, and how they go.
#pragma once

#include <functional>
#include <vector>

#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

/// How often each value is read.
std::vector<int> count_reads(const Program& program);
/// Which dims anything that is left is made of.
std::vector<bool> dims_in_use(const Program& program);

/// Replaces a value wherever it is read.
void replace_reads(Program& program, int value, int by);

/// Removes instructions, leaves of loops and inputs that no result depends on. Inputs stay while
/// they are the only ones to bring the size of a dim.
void remove_unused(Program& program);
/// Removes an input that nothing reads, if there is one that can go.
bool remove_unused_input(Program& program);

/// The parts of a scan's or while_loop's inputs, outputs, parameters and results that belong to
/// state k, all removed.
void remove_state(Instruction& loop, int k);

}  // namespace reel::fuzz
