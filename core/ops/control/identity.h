// core/ops/control/identity.h — identity_op and as_state, for code that writes records itself.
#pragma once

#include <string_view>

#include "reel/core/graph/graph.h"
#include "reel/core/op/op.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Returns its input as another value: contributions to its cotangent are summed separately.
extern const Op identity_op;

/// Returns x as another value, for leaves that an eager loop takes, or passes on without computing
/// them. As in a trace, where these are inputs and outputs of the loop, the result no longer counts
/// as an embedding table.
Tensor as_state(const Tensor& x);

/// Returns the name that a record of checkpoint_name gives its value; empty for other records.
std::string_view checkpoint_name_of(const OpRecord& record);

}  // namespace reel
