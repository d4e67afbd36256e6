// tests/trace/passes/plain_rnn.h — an RNN of five units over plain dims: the loop that tests of
// passes transform.
#pragma once

#include "reel/reel.h"

namespace reel {

struct Weights {
  Tensor in, recurrent, out;
};
struct Problem {
  Weights weights;
  Tensor x;
};

inline Problem plain_problem(std::int64_t steps = 4) {
  manual_seed(3);
  const auto draw = [](Dims dims) { return random_normal(dims, f64) * 0.5; };
  return {{draw({3, 5}), draw({5, 5}), draw({5, 2})}, draw({steps, 2, 3})};
}

inline Tensor plain_rnn(const Problem& p) {
  auto [ys, last, dim] =
      scan(Scan{.initial = zeros({2, 5}, f64), .xs = p.x, .body = [&](Tensor x, Tensor h) {
                  const Tensor next =
                      tanh(matmul(x, p.weights.in) + matmul(h, p.weights.recurrent));
                  return std::pair{matmul(next, p.weights.out), next};
                }});
  const Tensor of_last = sum(last);  // first: compilers differ in their order of operands
  return sum(square(ys)) + of_last;
}

}  // namespace reel
