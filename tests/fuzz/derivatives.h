// tests/fuzz/derivatives.h — gradients of programs, as functions.
#pragma once

#include <functional>

#include "reel/core/tensor.h"

namespace reel::fuzz {

/// A program, its gradients, and the gradients of those: all are functions of this kind.
using Function = std::function<Tensors(const Tensors&)>;

/// Results of f, and behind them its gradient.
Function with_gradient(const Function& f);
/// The same, where arguments that can be are tables, whose gradient is rows if they are read by
/// rows alone.
Function with_rows(const Function& f);
/// Arguments, and behind them as many directions -> the gradient's derivative in that direction,
/// and the gradient of that.
Function with_second(const Function& f);
/// Arguments, and behind them as many directions -> the first result of f, its tangent, and the
/// tangent of that.
Function with_tangents(const Function& f);
/// The same -> the gradient's derivative in that direction, forwards over reverse.
Function with_tangents_of_gradients(const Function& f);
/// The same -> the second derivative in that direction, and the gradient of that: third
/// derivatives.
Function with_third(const Function& f);

}  // namespace reel::fuzz
