// core/ops/identity.h — identity_op, for code that writes records itself.
#pragma once

#include <string_view>

#include "reel/core/graph.h"
#include "reel/core/op.h"
#include "reel/core/tensor.h"

namespace reel {

/// Gives its input as another value: contributions to its cotangent are added up on their own.
extern const Op identity_op;

/// The same for what a loop of eager mode takes, and for what it hands on that it did not make: as
/// in a trace, where these are a loop's inputs and outputs, a table is no table any more.
Tensor as_state(const Tensor& x);

/// The name that a record of checkpoint_name gives its value; empty for other records.
std::string_view checkpoint_name_of(const OpRecord& record);

}  // namespace reel
