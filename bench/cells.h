// bench/cells.h — cells that no library provides, as users write them.
#pragma once

#include <utility>

#include "reel/reel.h"

namespace reel::bench {

using reel::LayerNormLstmCell;

/// A cell invented for this benchmark: f, n, o, k = split(x·W + h·U + b),
///   c' = σ(f) c + (1 - σ(f)) n / (1 + |n|),   h' = σ(o) tanh(c') + (1 - σ(o)) σ(k) h.
struct CustomCell {
  using State = LstmCell::State;

  Tensor input_weight, recurrent_weight, bias;  ///< {in, gate}, {hidden, gate}, {gate}
  Dim in = 0, hidden = 0, gate = 0;

  static CustomCell init(const Dim& in, const Dim& hidden) {
    const LstmCell like = LstmCell::init(in, hidden);
    return {like.input_weight, like.recurrent_weight, like.bias, in, hidden, like.gate};
  }
  const Dim& in_dim() const { return in; }
  const Dim& out_dim() const { return hidden; }
  State initial_state(Dims dims) const {
    dims.push_back(hidden);
    return {zeros(dims), zeros(dims)};
  }
  std::pair<Tensor, State> operator()(const Tensor& x, const State& s) const {
    const Tensor gates = matmul(x, input_weight, in) + matmul(s.h, recurrent_weight, hidden) + bias;
    auto [f, n, o, k] = split<4>(gates, gate, hidden);
    const Tensor keep = sigmoid(f), open = sigmoid(o);
    const Tensor c = keep * s.c + (1 - keep) * (n / (1 + abs(n)));
    const Tensor h = open * tanh(c) + (1 - open) * (sigmoid(k) * s.h);
    return {h, {h, c}};
  }
};

/// An LSTM that divides its recurrent weights by the norm of each column in every step: a
/// loop-invariant op, as users write it. Source: Salimans & Kingma (2016), eq. 2, with g = 1.
struct WeightNormLstmCell {
  using State = LstmCell::State;

  LstmCell cell;

  static WeightNormLstmCell init(const Dim& in, const Dim& hidden) {
    return {LstmCell::init(in, hidden)};
  }
  const Dim& in_dim() const { return cell.in_dim(); }
  const Dim& out_dim() const { return cell.out_dim(); }
  State initial_state(const Dims& dims) const { return cell.initial_state(dims); }
  std::pair<Tensor, State> operator()(const Tensor& x, const State& s) const {
    LstmCell normed = cell;
    normed.recurrent_weight =
        cell.recurrent_weight / sqrt(sum(square(cell.recurrent_weight), cell.hidden));
    return normed(x, s);
  }
};

}  // namespace reel::bench
