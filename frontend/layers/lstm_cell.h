// frontend/layers/lstm_cell.h — LstmCell, long short-term memory, and ZoneoutLstmCell.
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

/// Options of LstmCell::init.
struct LstmCellOptions {
  bool has_peepholes = false;           ///< true: gates also read c
  double forget_bias = 1;               ///< initial bias of the forget gate; positive: open
  DType dtype = f32;                    ///< of the parameters
  InitialValues input_weight = {};      ///< of each gate in W; default: glorot_uniform
  InitialValues recurrent_weight = {};  ///< of each gate in U; default: glorot_uniform
};

/// Long short-term memory: i, f, g, o = split(x·W + h·U + b), then
///   c' = σ(f + p_f c) c + σ(i + p_i c) tanh(g),   h' = σ(o + p_o c') tanh(c').
///
/// The gates lie along `gate` in this order: input i, forget f, candidate g, output o, `hidden` of
/// each. The peepholes p are optional. Source: Hochreiter & Schmidhuber (1997); the forget gate:
/// Gers, Schmidhuber & Cummins (2000); peepholes: Gers, Schraudolph & Schmidhuber (2002).
struct LstmCell {
  /// The state: the output and the memory, each [..., hidden].
  struct State {
    Tensor h, c;  ///< the output, and the memory of the cell
  };
  /// The weights of peepholes.
  struct Peepholes {
    Tensor input, forget, output;  ///< p_i, p_f, p_o: {hidden} each
  };

  Tensor input_weight;                 ///< W: {in, gate}
  Tensor recurrent_weight;             ///< U: {hidden, gate}
  Tensor bias;                         ///< b: {gate}
  std::optional<Peepholes> peepholes;  ///< present if has_peepholes
  Dim in = 0, hidden = 0;              ///< dims of x and h
  Dim gate = 0;                        ///< 4·hidden

  /// Returns a cell with weights from the options, each gate as a matrix of its own; b is zero
  /// except for forget_bias; peepholes are zero. Throws ArgumentError if a dim has no name or no
  /// known size; DTypeError for a dtype that is not floating.
  static LstmCell init(const Dim& in, const Dim& hidden, const LstmCellOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return hidden; }
  /// Returns zeros over the given dims and `hidden`.
  State initial_state(const Dims& dims) const;
  /// Runs one time step. x: [..., in] -> {h', {h', c'}}: [..., hidden] each.
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
};

/// An LstmCell that randomly keeps the old state of units: in each time step, each unit of each
/// entry keeps its h with probability zoneout_h, and its c with probability zoneout_c. If
/// `training` is false, the state is the expectation, rate · old + (1 - rate) · new. Source:
/// Krueger et al. (2016), section 3.3.
struct ZoneoutLstmCell {
  /// The state of the cell.
  using State = LstmCell::State;

  LstmCell cell;                              ///< the cell that computes new states
  double zoneout_h = 0.05, zoneout_c = 0.05;  ///< probabilities of keeping an old element
  bool training = true;                       ///< false: uses expected values

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return cell.in; }
  const Dim& out_dim() const { return cell.hidden; }
  /// Returns zeros over the given dims and `hidden`.
  State initial_state(const Dims& dims) const { return cell.initial_state(dims); }
  /// Runs one time step, as LstmCell does. Throws ArgumentError unless both rates are in [0, 1].
  std::pair<Tensor, State> operator()(const Tensor& x, const State& state) const;
};

}  // namespace reel
REEL_API_END
