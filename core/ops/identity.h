// core/ops/identity.h — identity_op, for code that writes records itself.
#pragma once

#include <string_view>

#include "reel/core/graph.h"
#include "reel/core/op.h"

namespace reel {

/// Gives its input as another value: contributions to its cotangent are added up on their own.
extern const Op identity_op;

/// The name that a record of checkpoint_name gives its value; empty for other records.
std::string_view checkpoint_name_of(const OpRecord& record);

}  // namespace reel
