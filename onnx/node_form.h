// onnx/node_form.h — the forms of nodes in the op set of a model that is written.
#pragma once

#include <cstdint>

#include "reel/onnx/model_writer.h"

namespace reel::exported {

inline constexpr std::int64_t kFirstOpSet = 17, kLastOpSet = 27;  ///< of models that are written

/// Gives a node of op set 17 the form that it has in the model's op set: reductions take their axes
/// as an input from 18 on, DFT its axis from 20 on. May add constants to the model.
void use_form_of_op_set(Node& node, ModelWriter& model);

/// Returns the IR version of the first release of ONNX with an op set.
std::int64_t ir_version_of(std::int64_t op_set);

}  // namespace reel::exported
