// lstm.h — a long short-term memory cell, from ops that everyone has.
#pragma once

#include <reel/reel.h>

#include <cmath>
#include <vector>

struct LstmState {
  reel::Tensor h, c;
};

struct Lstm {
  reel::Tensor input_weight, recurrent_weight, bias;

  static Lstm random(const reel::Dim& in, const reel::Dim& hidden, const reel::Dim& gate) {
    const double scale = 1 / std::sqrt(static_cast<double>(hidden.size()));
    // The forget gate, second of four, is open at first: what is far back can be learnt from the
    // start.
    std::vector<float> bias(static_cast<std::size_t>(gate.size()));
    std::fill_n(bias.begin() + hidden.size(), hidden.size(), 1.0f);
    return {reel::random_normal({in, gate}) * scale, reel::random_normal({hidden, gate}) * scale,
            reel::tensor(bias, {gate})};
  }

  /// One step of all sequences. Hochreiter & Schmidhuber (1997), with the forget gate of Gers et
  /// al. (2000).
  LstmState step(const reel::Tensor& x, const LstmState& s, const reel::Dim& in,
                 const reel::Dim& hidden, const reel::Dim& gate) const {
    using namespace reel;
    Tensor gates = matmul(x, input_weight, in) + matmul(s.h, recurrent_weight, hidden) + bias;
    auto [i, f, g, o] = split<4>(gates, gate, hidden);
    Tensor c = sigmoid(f) * s.c + sigmoid(i) * tanh(g);
    return {sigmoid(o) * tanh(c), c};
  }
};
