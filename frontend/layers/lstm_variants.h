// frontend/layers/lstm_variants.h — ProjectedLstmCell, LayerNormLstmCell and SLstmCell.
#pragma once

#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/layer_norm.h"
#include "reel/frontend/layers/lstm_cell.h"

REEL_API_BEGIN
namespace reel {

/// An LstmCell with its output projected to fewer units, which the next step reads: h' = (σ(o)
/// tanh(c'))·P. Source: Sak, Senior & Beaufays (2014), eq. 5 and 6; PyTorch's proj_size.
struct ProjectedLstmCell {
  /// The output, [..., projected], and the memory, [..., hidden].
  struct State {
    Tensor h, c;  ///< the projected output, and the memory of the cell
  };

  Tensor input_weight;                    ///< W: {in, gate}
  Tensor recurrent_weight;                ///< U: {projected, gate}
  Tensor bias;                            ///< b: {gate}, as of LstmCell
  Tensor projection;                      ///< P: {hidden, projected}
  Dim in = 0, hidden = 0, projected = 0;  ///< dims of x, c and h
  Dim gate = 0;                           ///< 4·hidden

  /// Returns a cell as LstmCell::init does. Throws ArgumentError also if hidden and projected are
  /// one dim, or with peepholes.
  static ProjectedLstmCell init(const Dim& in, const Dim& hidden, const Dim& projected,
                                const LstmCellOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return projected; }
  /// Returns zeros: h over the given dims and `projected`, c over them and `hidden`.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. x: [..., in] -> {h', {h', c'}}.
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
};

/// An LstmCell with normalised products and memory: i, f, g, o = split(LN(x·W) + LN(h·U) + b),
///   c' = σ(f) c + σ(i) tanh(g),   h' = σ(o) tanh(LN(c')).
/// Source: Ba, Kiros & Hinton (2016), eq. 20 to 22.
struct LayerNormLstmCell {
  /// The state of an LstmCell.
  using State = LstmCell::State;

  Tensor input_weight;                    ///< W: {in, gate}
  Tensor recurrent_weight;                ///< U: {hidden, gate}
  Tensor bias;                            ///< b: {gate}, as of LstmCell
  LayerNorm of_input, of_state, of_cell;  ///< of x·W, h·U and c'
  Dim in = 0, hidden = 0;                 ///< dims of x and h
  Dim gate = 0;                           ///< 4·hidden

  /// Returns a cell as LstmCell::init does. Throws ArgumentError with peepholes.
  static LayerNormLstmCell init(const Dim& in, const Dim& hidden,
                                const LstmCellOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return hidden; }
  /// Returns zeros over the given dims and `hidden`.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. x: [..., in] -> {h', {h', c'}}.
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
};

/// The scalar LSTM of xLSTM, with exponential input gates: i, f, z, o = split(x·W + h·U + b), then
///   m' = max(log σ(f) + m, i),   i' = exp(i - m'),   f' = exp(log σ(f) + m - m'),
///   c' = f' c + i' tanh(z),   n' = f' n + i',   h' = σ(o) c' / n'.
/// All products with h are of all units: one head. Source: Beck et al. (2024), eq. 8 to 17.
struct SLstmCell {
  /// The state, [..., hidden] each.
  struct State {
    Tensor h, c;  ///< the output, and the memory
    Tensor n, m;  ///< the sum of weights, and the logarithm of their scale; m is -infinity at first
  };

  Tensor input_weight;      ///< W: {in, gate}
  Tensor recurrent_weight;  ///< U: {hidden, gate}
  Tensor bias;              ///< b: {gate}
  Dim in = 0, hidden = 0;   ///< dims of x and h
  Dim gate = 0;             ///< 4·hidden

  /// Returns a cell as LstmCell::init does. Throws ArgumentError with peepholes.
  static SLstmCell init(const Dim& in, const Dim& hidden, const LstmCellOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return hidden; }
  /// Returns zeros over the given dims and `hidden`; m is -infinity, so that the first step counts
  /// alone.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. x: [..., in] -> {h', the next state}.
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
};

}  // namespace reel
REEL_API_END
