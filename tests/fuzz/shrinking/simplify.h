// tests/fuzz/shrinking/simplify.h — removal of the parts of a program that no result depends on.
#pragma once

#include <functional>
#include <vector>

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// Returns the number of reads of each value.
std::vector<int> count_reads(const Program& program);
/// True for a term of the loss: its operand may have any dims.
bool is_term(const Instruction& in);
/// True if terms of the loss alone read the value.
bool feeds_terms_alone(const Program& program, int value);
/// True if the branches of each cond return the dims of a result in one order. Otherwise eager mode
/// and traces have it in different orders, and sums of its elements are rounded differently.
bool branches_have_one_order(const Program& program);
/// Returns, by dim, true if the program uses it.
std::vector<bool> dims_in_use(const Program& program);

/// Replaces all reads of a value by reads of `by`.
void replace_reads(Program& program, int value, int by);

/// Removes instructions, leaves of loops and inputs that no result depends on. An input stays if a
/// dim in use gets its size from no other input.
void remove_unused(Program& program);
/// Removes an input without readers. Returns false if none can be removed.
bool remove_unused_input(Program& program);

/// Removes state k from the inputs, outputs, parameters and results of a scan or while_loop.
void remove_state(Instruction& loop, int k);

}  // namespace reel::fuzz
