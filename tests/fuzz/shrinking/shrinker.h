// tests/fuzz/shrinking/shrinker.h — shrink, which makes a program small while it shows a defect.
#pragma once

#include <functional>

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// True if the program still shows the defect.
using Shows = std::function<bool(const Program&)>;

/// Returns a smaller program that shows the defect: without unneeded instructions, leaves of loops,
/// inputs and results, with blocks in place of the instructions that run them, and with small sizes
/// and plain numbers.
/// If the results of branches have one order of dims, they keep it.
/// shows: called with several hundred programs; some of them are not well-typed.
Program shrink(Program program, const Shows& shows);

/// Returns the measure that shrink() reduces.
std::int64_t size_of(const Program& program);

}  // namespace reel::fuzz
