// Pictures of graphs, and where their time goes: the program of docs/pictures.md. Its argument is
// the folder that it writes to.
#include <fstream>
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

/// The loop that a well-known page on TensorFlow's graphs describes.
std::pair<Tensor, Tensor> count_to_ten(const Tensor& i, const Tensor& n) {
  const auto is_less = [](const Tensor& a, const Tensor& n) { return a < n; };
  const auto add_two = [](const Tensor& a, const Tensor& n) { return std::tuple{a + 2, n}; };
  const auto [ii, nn] = while_loop(is_less, add_two, std::tuple{i, n});
  return {ii + 3, nn + 4};
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";

  const auto count = jit(count_to_ten, {.name = "count to ten"});
  count(scalar(1, i32), scalar(10, i32));
  count.graph().write_html(folder + "/count_to_ten.html");
  std::ofstream(folder + "/count_to_ten.dot") << count.graph().to_dot();

  const Dim time("time", 50), batch("batch", 16), in("in", 64), hidden("hidden", 128),
      out("out", 2);
  const Model model{LstmCell::init(in, hidden), Linear::init(hidden, out)};
  const Tensor x = random_normal({time, batch, in});
  const auto step = jit(value_and_grad(loss), {.name = "training step", .profile = true});
  for (int i = 0; i < 10; ++i) step(model, x);
  step.graph().write_html(folder + "/training_step.html");
  step.profile().write_chrome_trace(folder + "/training_step.json");
  std::cout << step.profile().summary();
}
