// Draws graphs and where their time goes: the program of docs/pictures.md. Its argument is the
// output folder.
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

/// The loop in a well-known page on TensorFlow's graphs.
std::pair<Tensor, Tensor> count_to_ten(const Tensor& i, const Tensor& n) {
  const auto is_less = [](const Tensor& a, const Tensor& n) { return a < n; };
  const auto add_two = [](const Tensor& a, const Tensor& n) { return std::tuple{a + 2, n}; };
  const auto [ii, nn] = while_loop(is_less, add_two, std::tuple{i, n});
  return {ii + 3, nn + 4};
}

/// Two chains of products. The first does not depend on the second: with the dataflow executor it
/// runs ahead, by at most the iterations in flight.
Tensor two_chains(const Tensor& start, const Tensor& weight) {
  const auto body = [&](const Tensor&, const std::pair<Tensor, Tensor>& chains) {
    const auto& [a, b] = chains;
    const Tensor next = tanh(matmul(a, weight));
    return std::pair{next, tanh(matmul(b + next, weight))};
  };
  return fori_loop(0, 8, body, std::pair{start, start}).second;
}

/// A loop inside a loop.
Tensor loops_in_loops(const Tensor& weight) {
  const auto inner = [&](const Tensor&, const Tensor& s) { return tanh(matmul(s, weight)); };
  const auto outer = [&](const Tensor&, const Tensor& s) {
    return fori_loop(0, 2, inner, s, {.name = "inner"}) * 0.5f;
  };
  return fori_loop(0, 3, outer, ones({128, 128}), {.name = "outer"});
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

  // With the dataflow executor and a record of the last run: its page steps through it.
  const auto chains = jit(two_chains, {.name = "two chains",
                                       .executor = Executor::dataflow,
                                       .profile = true,
                                       .parallel_iterations = 4});
  for (int i = 0; i < 3; ++i) chains(ones({192, 256}), random_normal({256, 256}) / 16);
  chains.graph().write_html(folder + "/two_chains.html");
  chains.profile().write_chrome_trace(folder + "/two_chains.json");
  std::cout << chains.profile().summary();

  const auto loops = jit(loops_in_loops, {.name = "loops in loops",
                                          .executor = Executor::dataflow,
                                          .profile = true,
                                          .parallel_iterations = 2});
  for (int i = 0; i < 3; ++i) loops(random_normal({128, 128}) / 16);
  loops.profile().write_chrome_trace(folder + "/loops_in_loops.json");
}
