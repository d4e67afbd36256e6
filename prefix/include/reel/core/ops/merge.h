// core/ops/merge.h — ops that make one axis of several, and several of one.
#pragma once

#include "reel/core/op.h"

namespace reel {

extern const Op merge_dims_op;
extern const Op split_dim_op;
/// The same of tensors with plain sizes that only a run knows.
extern const Op merge_dims_unknown_op;
extern const Op split_dim_unknown_op;

}  // namespace reel
