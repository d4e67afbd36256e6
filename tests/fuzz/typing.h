// tests/fuzz/typing.h — what several families of rules say about their inputs and outputs.
#pragma once

#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/expression.h"

namespace reel::fuzz {

/// One rule, which lives to the end of the program.
const Rule* expression(Expression expression, int weight, Typing typing);

/// The instruction takes these inputs and gives one value of that type.
bool gives(Drafter& d, Instruction& in, const std::vector<int>& inputs, const ValueType& type);

/// a -> its dims.
Typing unary(Element from, Element to);
/// a, b of one kind -> the dims of both.
Typing binary(Element from, Element to);
/// a (with at least one axis), axes -> a without them.
Typing reduction(Element from, Element to);
/// a, axis -> the type of a.
Typing along(Element element);
/// a, axes -> the type of a.
Typing along_some(Element element);

/// A number between -2 and 2 in steps of 1/8.
double draw_number(Drafter& d);

}  // namespace reel::fuzz
