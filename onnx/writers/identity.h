// onnx/writers/identity.h — ops that return their first input.
#pragma once

#include <string_view>

namespace reel::exported {

/// Returns true for an op that returns its first input in a saved model: names, marks for
/// gradients, checks.
bool returns_first_input(std::string_view op);

}  // namespace reel::exported
