// autodiff/run_again.h — the vjp of a computation that is run again, then backwards.
#pragma once

#include <vector>

#include "reel/autodiff/tape.h"
#include "reel/core/op/vjp.h"

namespace reel {

/// Returns x with the named dims of type `again`. x is a value of the first run, or its cotangent.
/// The second run may have made its dims anew.
Tensor with_named_dims_of(const Tensor& x, const TensorType& again);

/// Adds the cotangents of the inputs at `places` to a vjp. `sources` are these inputs as the tape
/// watched them. `outputs` were recomputed on the tape, and `cotangents` belong to them; undefined
/// entries have none.
void add_cotangents_of(Vjp& at, RecordingTape& tape, const Tensors& outputs,
                       const Tensors& cotangents, const Tensors& sources,
                       const std::vector<std::size_t>& places);

}  // namespace reel
