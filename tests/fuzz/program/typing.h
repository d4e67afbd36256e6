// tests/fuzz/program/typing.h — typings that several families of rules share.
#pragma once

#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/program/expression.h"

namespace reel::fuzz {

/// Makes a rule that lives until the process ends.
const Rule* expression(Expression expression, int weight, Typing typing);

/// Gives the instruction these inputs and one output of this type. Returns true.
bool gives(Drafter& d, Instruction& in, const std::vector<int>& inputs, const ValueType& type);

/// a -> the dims of a.
Typing unary(Element from, Element to);
/// a, b of one kind -> the joined dims.
Typing binary(Element from, Element to);
/// a (with at least one axis), axes -> a without them.
Typing reduction(Element from, Element to);
/// a, axis -> the type of a.
Typing along(Element element);
/// a, axes -> the type of a.
Typing along_some(Element element);

/// Returns a real tensor with at least `least_rank` axes; -1 if there is none.
int pick_real(Drafter& d, int least_rank);

/// Returns a number between -2 and 2, a multiple of 1/8.
double draw_number(Drafter& d);

/// Drafts an instruction that repeats operand a, a real one, along more dims. in.dims: the dims of
/// a and others.
bool expanded(Drafter& d, Instruction& in);

}  // namespace reel::fuzz
