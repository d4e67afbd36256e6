// autodiff/run_again.h — the vjp of what is computed once more, and then backwards.
#pragma once

#include <vector>

#include "reel/autodiff/tape.h"
#include "reel/core/vjp.h"

namespace reel {

/// A value of the first run, or a cotangent of one, with the named dims of the same value of the
/// second run, which may have made them again.
Tensor with_dims_of(const Tensor& x, const TensorType& again);

/// Gives a vjp the cotangents of the inputs at `places`, which the tape has seen as `sources`, from
/// those of its outputs, which were just computed again as `outputs`; undefined where there is
/// none.
void add_cotangents_of(Vjp& at, RecordingTape& tape, const Tensors& outputs,
                       const Tensors& cotangents, const Tensors& sources,
                       const std::vector<std::size_t>& places);

}  // namespace reel
