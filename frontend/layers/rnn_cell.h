// frontend/layers/rnn_cell.h — RnnCell, the simple recurrent network.
#pragma once

#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/initial_values.h"

REEL_API_BEGIN
namespace reel {

/// Options of RnnCell::init.
struct RnnCellOptions {
  DType dtype = f32;                    ///< of the parameters
  InitialValues input_weight = {};      ///< of each gate in W; default: glorot_uniform
  InitialValues recurrent_weight = {};  ///< of each gate in U; default: glorot_uniform
};

/// h' = tanh(x·W + h·U + b). Source: Elman (1990).
struct RnnCell {
  using State = Tensor;  ///< h

  Tensor input_weight;      ///< W: {in, gate}
  Tensor recurrent_weight;  ///< U: {hidden, gate}
  Tensor bias;              ///< b: {gate}
  Dim in = 0, hidden = 0;   ///< dims of x and h
  Dim gate = 0;             ///< has hidden's size: the dim of h' in U

  /// Returns a cell with weights from the options and b = 0. Throws ArgumentError if a dim has
  /// no name or no known size; DTypeError for a dtype that is not floating.
  static RnnCell init(const Dim& in, const Dim& hidden, const RnnCellOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return hidden; }
  /// Returns zeros over the given dims and `hidden`.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. x: [..., in] -> {h', h'}: [..., hidden].
  std::pair<Tensor, State> operator()(const Tensor& x, const State& h) const;
};

}  // namespace reel
REEL_API_END
