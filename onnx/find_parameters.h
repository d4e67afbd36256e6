// onnx/find_parameters.h — chooses the constants of a model that are its parameters.
#pragma once

#include <map>
#include <string>

#include "reel/onnx/program.h"

namespace reel::imported {

/// Takes the parameters out of all graphs of the program, and returns them by name.
///
/// Parameters are the floating-point initializers and Constant nodes with more than one element,
/// also in branches, bodies and functions. Exceptions: constants that only give numbers to
/// inputs that a rule names (Rule::numbers), through other ops too; types of 8 bits or fewer; and
/// Constant nodes that save_onnx marked. Initializers that save_onnx wrote are parameters of any
/// size. A parameter has the name of its value. If several in the model have it, parameters of
/// inner graphs have the names of the nodes and branches around them in front:
/// `if/then_branch/w`.
std::map<std::string, Tensor> take_parameters(Program& program);

}  // namespace reel::imported
