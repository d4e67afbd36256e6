// frontend/layers/gru_cell.h — GruCell, the gated recurrent unit in both of its forms.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/initial_values.h"

REEL_API_BEGIN
namespace reel {

/// Options of GruCell::init.
struct GruCellOptions {
  bool reset_after = true;              ///< applies the reset gate after the product: see GruCell
  DType dtype = f32;                    ///< of the parameters
  InitialValues input_weight = {};      ///< of each gate in W; default: glorot_uniform
  InitialValues recurrent_weight = {};  ///< of each gate in U; default: glorot_uniform
};

/// Gated recurrent unit: r = σ(x·W_r + h·U_r + b_r), z = σ(x·W_z + h·U_z + b_z),
///   n = tanh(x·W_n + b_n + r (h·U_n + d))   with reset_after: one product, as in cuDNN,
///   n = tanh(x·W_n + b_n + (r h)·U_n)       otherwise,
///   h' = (1 - z) n + z h.
///
/// The gates lie along `gate` in this order: reset r, update z, candidate n, `hidden` of each.
/// Source: Cho et al. (2014), eq. 5 to 8; the other form is in the first version of the paper on
/// arXiv, 1406.1078v1.
struct GruCell {
  using State = Tensor;  ///< h

  Tensor input_weight;                   ///< W: {in, gate}
  Tensor recurrent_weight;               ///< U: {hidden, gate}
  Tensor bias;                           ///< b: {gate}
  std::optional<Tensor> candidate_bias;  ///< d: {hidden}; present if reset_after
  Dim in = 0, hidden = 0;                ///< dims of x and h
  Dim gate = 0;                          ///< 3·hidden

  /// Returns a cell with weights from the options, each gate as a matrix of its own, and zero
  /// biases. Throws ArgumentError if a dim has no name or no known size; DTypeError for a dtype
  /// that is not floating.
  static GruCell init(const Dim& in, const Dim& hidden, const GruCellOptions& options = {});

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
