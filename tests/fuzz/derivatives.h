// tests/fuzz/derivatives.h — gradients of programs, as functions.
#pragma once

#include <functional>
#include <utility>

#include "reel/core/types/tensor.h"

namespace reel::fuzz {

/// A program, its gradient, or a higher derivative.
using Function = std::function<Tensors(const Tensors&)>;

/// Splits x into halves: arguments, and directions for real arguments. An argument of another kind
/// is its own direction, since its tangent does not matter.
std::pair<Tensors, Tensors> arguments_and_directions(const Tensors& x);

/// Returns the function: arguments -> results of f, then its gradient.
Function with_gradient(const Function& f);
/// As with_gradient(), with arguments as tables where possible. The gradient of a table is rows if
/// only rows of it are read.
Function with_rows(const Function& f);
/// Returns the function: arguments, then as many directions -> the slope of the first result in
/// that direction, then the gradient of the slope.
Function with_second(const Function& f);
/// Returns the function: arguments, then as many directions -> the first result of f, its tangent,
/// and the tangent of the tangent.
Function with_tangents(const Function& f);
/// Returns the function: arguments, then as many directions -> the gradient's derivative in that
/// direction, by forward mode over reverse mode.
Function with_tangents_of_gradients(const Function& f);
/// Returns the function: arguments, then as many directions -> the second derivative in that
/// direction, then its gradient, a third derivative.
Function with_third(const Function& f);

}  // namespace reel::fuzz
