// The example of the top README: a recurrent network over sequences of different lengths, eager and
// traced.
#include <reel/reel.h>

#include <iostream>

using namespace reel;

struct Rnn {  // a model is a plain struct of tensors
  Tensor input, recurrent;
};

int main() {
  const Dim batch("batch", 2), in("in", 3), hidden("hidden", 4), next("next", 4);
  const Dim time("time", tensor({5, 3}, {batch}));  // each sequence has its own length
  const Rnn rnn{random_normal({in, next}), random_normal({hidden, next})};
  const Tensor x = random_normal({batch, time, in});

  auto loss = [&](const Rnn& rnn, const Tensor& x) -> Tensor {
    auto step = [&](const Tensor& x_t, const Tensor& h) {
      Tensor h_next = tanh(matmul(x_t, rnn.input, in) + matmul(h, rnn.recurrent, hidden));
      h_next = rename(h_next, next, hidden);
      return std::pair{h_next, h_next};  // the stacked output, and the next state
    };
    auto [hs, last, steps] =
        scan(Scan{.spatial_dim = time, .initial = zeros({batch, hidden}), .xs = x, .body = step});
    return mean(square(hs), {batch, time, hidden});  // padding does not count
  };

  auto [value, gradient] = value_and_grad(loss)(rnn, x);  // eager: now, line by line
  auto fast = jit(value_and_grad(loss));
  auto [same_value, same_gradient] = fast(rnn, x);  // traced: one graph with one loop in it
  std::cout << value << '\n' << same_value << '\n' << gradient.recurrent << '\n';
}
