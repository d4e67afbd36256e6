// Training in every mode: the adding problem (Hochreiter & Schmidhuber 1997) on sequences of 50
// steps.
#include <random>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using TrainingTest = InEveryMode;
REEL_IN_EVERY_MODE(TrainingTest);

struct Lstm {
  Tensor input_weight, recurrent_weight, bias;
};
struct LstmState {
  Tensor h, c;
};
struct Model {
  Lstm cell;
  Tensor readout;
};

struct Batch {
  Tensor x, target;
};

TEST_P(TrainingTest, LearnsTheAddingProblem) {
  constexpr int kBatch = 32, kSteps = 50;
  const Dim batch("batch", kBatch), time("time", kSteps), in("in", 2), hidden("hidden", 24),
      gate("gate", 96);
  std::mt19937 random(3);
  const auto draw = [&] {
    std::uniform_real_distribution<double> unit(0, 1);
    std::uniform_int_distribution<int> place(0, kSteps / 2 - 1);
    std::vector<double> x, target;
    for (int b = 0; b < kBatch; ++b) {
      const int first = place(random), second = kSteps / 2 + place(random);
      double sum = 0;
      for (int t = 0; t < kSteps; ++t) {
        const bool is_marked = t == first || t == second;
        x.push_back(unit(random));
        if (is_marked) sum += x.back();
        x.push_back(is_marked);
      }
      target.push_back(sum);
    }
    return Batch{tensor(x, {batch, time, in}, f32), tensor(target, {batch}, f32)};
  };
  manual_seed(1);
  // The bias of the forget gate (the second of four) starts at 1 (Jozefowicz et al. 2015).
  const Tensor bias =
      where(logical_and(range(gate) >= 24, range(gate) < 48), ones({gate}), zeros({gate}));
  Model model{{random_normal({in, gate}) * 0.3, random_normal({hidden, gate}) * 0.2, bias},
              random_normal({hidden}) * 0.3};
  const auto loss = [&](const Model& m, const Batch& data) {
    const LstmState last =
        scan(Scan{
                 .spatial_dim = time,
                 .initial = LstmState{zeros({batch, hidden}), zeros({batch, hidden})},
                 .xs = data.x,
                 .body =
                     [&](const Tensor& x, const LstmState& s) {
                       const Lstm& cell = m.cell;
                       auto [i, f, g, o] =
                           split<4>(matmul(x, cell.input_weight, in) +
                                        matmul(s.h, cell.recurrent_weight, hidden) + cell.bias,
                                    gate, hidden);
                       const Tensor c = sigmoid(f) * s.c + sigmoid(i) * tanh(g);
                       return std::pair{None{}, LstmState{sigmoid(o) * tanh(c), c}};
                     },
             })
            .state;
    return mean(square(matmul(last.h, m.readout, hidden) - data.target));
  };
  Adam adam(model, {.learning_rate = 0.01f});
  const auto step = run([&](Model m, Adam<Model> adam, const Batch& data) {
    auto [value, gradient] = value_and_grad(loss)(m, data);
    adam.update(m, clip_by_global_norm(gradient, 1.0f).first);
    return std::tuple{m, adam, value};
  });
  double recent = 1;
  int steps = 0;
  for (; steps < 2000 && recent >= 0.03; ++steps) {
    auto [next, next_adam, value] = step(model, adam, draw());
    model = next;
    adam = next_adam;
    recent = 0.95 * recent + 0.05 * value.item<float>();
  }
  EXPECT_LT(recent, 0.05) << "after " << steps << " steps";
  EXPECT_EQ(step.trace_count(), 1);
}

}  // namespace
}  // namespace reel
