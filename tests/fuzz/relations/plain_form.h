// tests/fuzz/relations/plain_form.h — programs with named dims, run on tensors with plain axes.
//
// A tensor has its axes in the order of the numbers that their dims have in the program, so the
// program decides where an axis stands. An operand of an element-wise op gets axes of size 1 for
// the dims that it lacks.
#pragma once

#include "reel/tests/fuzz/machine.h"

namespace reel::fuzz {

/// True if run_plainly() can run all of the program.
bool has_plain_form(const Program& program);

/// True if instructions of the rule may have a plain form.
bool may_have_plain_form(const Rule& rule);

/// Runs an instruction on plain axes.
void run_plainly(const Instruction& in, Machine& machine);

/// Return values with the axis of a dim in front. A value that lacks the dim is repeated along it.
/// Requires that the first value has the dim.
Tensors to_front(Machine& machine, const std::vector<int>& values, int dim);
/// Brings the axes of a value into order. Its first axis is the first of its dims.
void from_front(Machine& machine, int value);

/// Returns a tensor with named dims of the program as one with plain axes. A dim that is not of the
/// program comes first.
Tensor plain_form_of(const Tensor& x);

}  // namespace reel::fuzz
