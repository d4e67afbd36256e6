// Prints explain() for a training step: the program of docs/explain.md.
#include <iostream>

#include "reel/reel.h"

using namespace reel;

struct Model {
  LstmCell cell;
  Linear out;
};

Tensor loss(const Model& model, const Tensor& x) {
  const auto body = [&](const Tensor& x, const LstmCell::State& state) {
    const auto [y, next] = model.cell(x, state);
    return std::pair{model.out(y), next};
  };
  return mean(square(scan(Scan{.spatial_dim = x.dim("time"),
                               .initial = model.cell.initial_state({x.dim("batch")}),
                               .xs = x,
                               .body = body,
                               .name = "lstm"})
                         .ys));
}

int main() {
  const Dim time("time", 50), batch("batch", 16), in("in", 64), hidden("hidden", 128),
      out("out", 2);
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, out)};
  const Tensor x = random_normal({time, batch, in});
  const auto step = jit(value_and_grad(loss), {.name = "step", .profile = true});
  for (int i = 0; i < 10; ++i) step(model, x);
  std::cout << step.explain();
}
