// frontend/layers/lstm_cell.h — LstmCell, long short-term memory, and ZoneoutLstmCell.
#pragma once

#include <optional>
#include <utility>

#include "reel/core/dim.h"
#include "reel/core/dtype.h"
#include "reel/core/tensor.h"

namespace reel {

struct LstmCellOptions {
  bool has_peepholes = false;
  double forget_bias = 1;  ///< where the forget gate's bias starts: open, if it is positive
  DType dtype = f32;
};

/// Long short-term memory: i, f, g, o = split(x·W + h·U + b), and then
///   c' = σ(f + p_f c) c + σ(i + p_i c) tanh(g),   h' = σ(o + p_o c') tanh(c').
///
/// The gates lie along `gate` in this order: input i, forget f, candidate g, output o, `hidden` of
/// each. The peepholes p are optional. Source: Hochreiter & Schmidhuber (1997); the forget gate:
/// Gers, Schmidhuber & Cummins (2000); peepholes: Gers, Schraudolph & Schmidhuber (2002).
struct LstmCell {
  struct State {
    Tensor h, c;
  };
  struct Peepholes {
    Tensor input, forget, output;  ///< p_i, p_f, p_o: {hidden} each
  };

  Tensor input_weight;      ///< W: {in, gate}
  Tensor recurrent_weight;  ///< U: {hidden, gate}
  Tensor bias;              ///< b: {gate}
  std::optional<Peepholes> peepholes;
  Dim in = 0, hidden = 0;
  Dim gate = 0;  ///< 4·hidden

  /// Weights by glorot_uniform, each gate a matrix of its own; b zeros but for forget_bias;
  /// peepholes zeros. Throws ArgumentError when a dim has no name or no known size.
  static LstmCell init(const Dim& in, const Dim& hidden, const LstmCellOptions& options = {});

  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return hidden; }
  /// Zeros over the given dims and `hidden`.
  State initial_state(const Dims& dims) const;
  /// One step. x: [..., in] -> {h', {h', c'}}: [..., hidden] each.
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
};

/// An LstmCell of which units keep their h, or their c, from step to step at random: each unit of
/// each entry stays as it was with probability zoneout_h, or zoneout_c. Without training both are
/// mixed by their expectations, rate · old + (1 - rate) · new.
/// Source: Krueger et al. (2016), section 3.3.
struct ZoneoutLstmCell {
  using State = LstmCell::State;

  LstmCell cell;
  double zoneout_h = 0.05, zoneout_c = 0.05;
  bool training = true;

  const Dim& in_dim() const { return cell.in; }
  const Dim& out_dim() const { return cell.hidden; }
  State initial_state(const Dims& dims) const { return cell.initial_state(dims); }
  /// One step, as of LstmCell. Throws ArgumentError unless both rates are in [0, 1].
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
};

}  // namespace reel
