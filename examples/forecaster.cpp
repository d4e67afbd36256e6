// A state-space model that forecasts series of different lengths: its recurrence is one
// linear_scan.
#include <reel/reel.h>

#include <cmath>
#include <iostream>
#include <numbers>

using namespace reel;

const Dim one("one", 1), state("state", 32), hidden("hidden", 16);

struct Forecaster {
  Linear in = Linear::init(one, state);
  Tensor decay = random_uniform({state}, -3, 3);  // of each state, before the sigmoid
  Linear mix = Linear::init(state, hidden), out = Linear::init(hidden, one);

  Tensor operator()(const Tensor& x) const {
    const Tensor h = linear_scan(sigmoid(decay), in(x), x.dim("time"));  // h_t = a h_{t-1} + b_t
    return out(gelu(mix(h)));
  }
};

/// Returns noisy waves with periods from 6 to 18 steps: {batch, time, one}.
Tensor draw_series(const Dim& batch) {
  const Dim time("time", random_integers({batch}, 30, 60));
  const Tensor period = random_uniform({batch}, 6, 18), phase = random_uniform({batch}, 0, 6);
  const Tensor t = cast(range(time), f32);
  const Tensor angle = expand(t, batch) * (2 * std::numbers::pi) / period + phase;
  const Tensor noise = random_normal({batch, time}) * 0.05;
  return expand(sin(angle) + noise, {batch, time, one});
}

/// Returns the mean squared error, at every step, of a forecast of the next element.
Tensor error_of(const Tensor& forecast, const Tensor& x) {
  const Dim time = x.dim("time");
  return mean_squared_error(slice(forecast, time, 0, -1, time - 1),
                            slice(x, time, 1, {}, time - 1));
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::stoi(arguments[1]) : 600;
  manual_seed(1);
  const auto step = jit([](Forecaster model, AdamW<Forecaster> optimiser, const Tensor& x) {
    const auto loss = [&](const Forecaster& model) { return error_of(model(x), x); };
    const auto [value, gradient] = value_and_grad(loss)(model);
    optimiser.update(model, gradient);
    return std::tuple{model, optimiser, value};
  });
  const Dim batch("batch", 32);
  Forecaster model;
  AdamW<Forecaster> optimiser(model, {.learning_rate = 0.02});
  for (int i = 0; i <= steps; ++i) {
    Tensor loss;
    std::tie(model, optimiser, loss) =
        step(std::move(model), std::move(optimiser), draw_series(batch));
    if (i % (steps / 3) == 0) std::cout << "step " << i << ": error " << loss.item<float>() << '\n';
  }
  const Tensor x = draw_series(batch);
  std::cout << "of new series: " << error_of(model(x), x).item<float>()
            << "; of the last element as forecast: " << error_of(x, x).item<float>()
            << "; noise alone: 0.0025\n";

  // The first series: o is an element, * its forecast, and # both.
  const auto element = rows_of<float>(x.at(one, 0))[0];
  const auto forecast = rows_of<float>(transpose(model(x).at(one, 0), {batch, x.dim("time")}))[0];
  for (int height = 5; height >= -5; --height) {
    for (std::size_t t = 1; t < element.size(); ++t) {
      const bool has_element = std::lround(4 * element[t]) == height;
      const bool has_forecast = std::lround(4 * forecast[t - 1]) == height;
      std::cout << " o*#"[has_element + 2 * has_forecast];
    }
    std::cout << '\n';
  }
}
