// tests/fuzz/relations/orders.h — Order, derivatives of functions that are computed row by row.
#pragma once

#include "reel/tests/fuzz/derivatives.h"
#include "reel/tests/fuzz/program/program.h"
#include "reel/tests/fuzz/random.h"

namespace reel::fuzz {

/// The order of a derivative: none, reverse mode, reverse over reverse, forward, forward over
/// reverse.
enum class Order { values, gradients, second_gradients, tangents, tangents_of_gradients };

const char* name_of(Order order);

/// Draws an order at which results of the program can be compared: second derivatives are too
/// inexact in f32.
Order draw_order(const Program& program, Random& random);

/// True if arguments are followed by as many directions.
bool takes_directions(Order order);

/// Returns f, or a derivative of f. A gradient is taken of the sum of the first result, so that a
/// derivative of all rows at once equals the derivatives of each row.
Function of_order(Order order, const Function& f);

}  // namespace reel::fuzz
