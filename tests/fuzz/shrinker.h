// tests/fuzz/shrinker.h — makes a program that shows a defect as small as it can be.
#pragma once

#include <functional>

#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

/// Does the program still show what it is to show?
using Shows = std::function<bool(const Program&)>;

/// A smaller program that shows the same: without instructions, leaves of loops, inputs and results
/// that it takes no part of, blocks in place of what runs them, small sizes and plain numbers.
/// shows: is asked of several hundred programs, of which some are not well-typed.
Program shrink(Program program, const Shows& shows);

/// What shrink makes smaller.
std::int64_t size_of(const Program& program);

}  // namespace reel::fuzz
