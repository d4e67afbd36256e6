// Fits the rates of an ordinary differential equation: an adaptive solver is a while_loop, and the
// gradient goes through it, over as many steps as the solver took.
#include <reel/reel.h>

#include <iostream>

using namespace reel;

const Dim species("species", 2), rate("rate", 4);

/// Lotka and Volterra's predators and prey: x' = a x - b x y, y' = d x y - c y.
Tensor slope(const Tensor& rates, const Tensor& at) {
  const Tensor x = at.at(0), y = at.at(1);
  const Tensor dx = rates.at(0) * x - rates.at(1) * x * y;
  const Tensor dy = rates.at(3) * x * y - rates.at(2) * y;
  return stack({dx, dy}, species);
}

/// Returns the solution after `duration`. Error per step: about 1e-4. Source: Bogacki & Shampine
/// (1989).
Tensor solve(const Tensor& rates, const Tensor& start, double duration) {
  struct State {
    Tensor time, step, at;
  };
  const auto try_step = [&](const State& s) {
    const Tensor h = stop_gradient(minimum(s.step, duration - s.time));
    const Tensor k1 = slope(rates, s.at);
    const Tensor k2 = slope(rates, s.at + h * k1 / 2);
    const Tensor k3 = slope(rates, s.at + h * k2 * 0.75);
    const Tensor next = s.at + h * (2 * k1 + 3 * k2 + 4 * k3) / 9;
    const Tensor k4 = slope(rates, next);
    const Tensor error = max(abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)));
    const Tensor accepted = error < 1e-4;
    const Tensor factor = clip(0.9 * pow(1e-4 / (error + 1e-12), 1 / 3.), 0.2, 5);
    return State{where(accepted, s.time + h, s.time), stop_gradient(h * factor),
                 where(accepted, next, s.at)};
  };
  const auto is_running = [&](const State& s) { return s.time < duration - 1e-6; };
  return while_loop(is_running, try_step, State{scalar(0.), scalar(0.1), start},
                    {.maximum_iterations = 1000})
      .at;
}

/// Returns the populations at times 0.5, 1, ... 4.
Tensor observe(const Tensor& rates, const Dim& times) {
  const Tensor start = tensor({1., 1.}, {species});
  const auto body = [&](const Tensor& at) {
    const Tensor next = solve(rates, at, 0.5);
    return std::pair{next, next};
  };
  return scan(Scan{.spatial_dim = times, .initial = start, .body = body}).ys;
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::stoi(arguments[1]) : 600;
  const Dim times("times", 8);
  const Tensor truth = tensor({1.5, 1., 3., 1.}, {rate});
  const Tensor data = observe(truth, times);
  const auto loss = [&](const Tensor& rates) {
    return mean_squared_error(observe(rates, times), data);
  };
  const auto step = jit([&](Tensor rates, Adam<Tensor> optimiser) {
    const auto [value, gradient] = value_and_grad(loss)(rates);
    optimiser.update(rates, gradient);
    return std::tuple{rates, optimiser, value};
  });
  Tensor rates = tensor({1., 0.8, 2.5, 0.8}, {rate});
  Adam<Tensor> optimiser(rates, {.learning_rate = 0.02});
  for (int i = 0; i <= steps; ++i) {
    Tensor value;
    std::tie(rates, optimiser, value) = step(std::move(rates), std::move(optimiser));
    if (i % (steps / 3) == 0)
      std::cout << "step " << i << ": error " << value.item<float>() << '\n';
  }
  std::cout << "rates " << rates << ", true ones " << truth << '\n';
}
