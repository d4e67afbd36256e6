// A model on one page: an LSTM that learns to add up the numbers of sequences of different lengths.
#include <reel/reel.h>

#include <iostream>

using namespace reel;

struct LstmState {
  Tensor h, c;
};

struct Lstm {
  Tensor input_weight, recurrent_weight, bias;

  LstmState step(const Tensor& x, const LstmState& s, const Dim& in, const Dim& hidden,
                 const Dim& gate) const {
    const Tensor gates = matmul(x, input_weight, in) + matmul(s.h, recurrent_weight, hidden) + bias;
    auto [i, f, g, o] = split<4>(gates, gate, hidden);
    const Tensor c = sigmoid(f) * s.c + sigmoid(i) * tanh(g);
    return {sigmoid(o) * tanh(c), c};
  }
};

struct Adder {  // parts of a model are members, at any depth
  Lstm encoder;
  Tensor readout;
};

int main() {
  manual_seed(1);
  const Dim in("in", 1), hidden("hidden", 8), gate("gate", 32);
  Adder model{
      .encoder = {random_normal({in, gate}) * 0.3, random_normal({hidden, gate}) * 0.3,
                  zeros({gate})},
      .readout = random_normal({hidden}) * 0.3,
  };

  // Dims come with the tensors: every batch may have its own.
  auto predict = [&](const Adder& m, const Tensor& x) -> Tensor {
    const Dim batch = x.dim("batch"), time = x.dim("time");
    auto [hs, last, steps] = scan(Scan{
        .spatial_dim = time,
        .initial = LstmState{zeros({batch, hidden}), zeros({batch, hidden})},
        .xs = x,
        .body =
            [&](const Tensor& x_t, const LstmState& s) {
              const LstmState next = m.encoder.step(x_t, s, in, hidden, gate);
              return std::pair{next.h, next};
            },
    });
    return matmul(last.h, m.readout, hidden);  // each sequence's state after its own last step
  };
  auto loss = [&](const Adder& m, const Tensor& x) -> Tensor {
    const Tensor total = sum(x, {x.dim("time"), in});  // padding does not count
    return mean(square(predict(m, x) - total));
  };

  // A training step is a function like any other; jit makes one graph of it, including the
  // optimiser.
  auto train_step = jit([&](Adder m, Adam<Adder> adam, const Tensor& x) {
    auto [value, gradient] = value_and_grad(loss)(m, x);
    adam.update(m, gradient);
    return std::tuple{m, adam, value};
  });

  const Dim batch("batch", 16);
  std::vector<int> lengths;
  for (int i = 0; i < 16; ++i) lengths.push_back(1 + i % 8);
  Adam adam(model, {.learning_rate = 0.02});
  for (int step = 0; step <= 300; ++step) {
    const Dim time("time", tensor(lengths, {batch}));
    const Tensor x = random_uniform({batch, time, in}, -0.5, 0.5);
    auto [next_model, next_adam, value] = train_step(model, adam, x);
    model = next_model;
    adam = next_adam;
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << value.item<float>() << '\n';
  }

  // Member names become names in the file: encoder.input_weight and so on.
  save_safetensors("adder.safetensors", model);
  load_safetensors("adder.safetensors", model);

  const Dim one("batch", 1), time("time", 4);  // eager: a debugger can step through
  const Tensor x = tensor({0.4, -0.1, 0.3, 0.2}, {one, time, in});
  std::cout << "0.4 - 0.1 + 0.3 + 0.2 is about " << predict(model, x) << '\n';
}
