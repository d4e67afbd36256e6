// frontend/layers/min_gru_cell.h — MinGruCell, a gated unit whose sequences run in parallel.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/linear.h"

REEL_API_BEGIN
namespace reel {

/// Options of MinGruCell::init.
struct MinGruCellOptions {
  DType dtype = f32;  ///< of the parameters
};

/// A GRU without recurrent gates: z = σ(x·W_z + b_z), h' = (1 - z) h + z (x·W_h + b_h). A
/// cell for recur, and a layer for whole sequences by linear_scan, with equal results up to
/// rounding. Source: Feng et al. (2024), section 3.1.
struct MinGruCell {
  using State = Tensor;  ///< h

  Linear update, candidate;  ///< {in, hidden}: of z, and of the candidate
  Dim in = 0, hidden = 0;    ///< dims of x and h

  /// Returns a cell with parameters of Linear::init. Throws ArgumentError if a dim has no name or
  /// no known size; DTypeError for a dtype that is not floating.
  static MinGruCell init(const Dim& in, const Dim& hidden, const MinGruCellOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return hidden; }
  /// Returns zeros over the given dims and `hidden`.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. x: [..., in] -> {h', h'}: [..., hidden].
  std::pair<Tensor, State> operator()(const Tensor& x, const State& h) const;
  /// Runs a whole sequence from h, by default zeros. x: [..., time, in] -> all h.
  Tensor operator()(const Tensor& x, const Dim& time, const std::optional<State>& h = {}) const;
};

}  // namespace reel
REEL_API_END
