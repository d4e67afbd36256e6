#include "forecaster.h"

#include "libtorch_models.h"

namespace reel::bench {
namespace {

struct Forecaster {
  StackedCells<std::vector<GruCell>> cells;
  Linear out;
};

struct Series {
  Tensor x, y;
};

Tensor loss_of(const Forecaster& model, const Series& series) {
  const auto [hs, state] = recur(model.cells, series.x, series.x.dim("time"));
  return mean_squared_error(model.out(hs), series.y);
}

Forecaster random_forecaster(const ForecasterSizes& s) {
  const Dim in("in", s.in), lower("hidden", s.hidden), upper("hidden", s.hidden);
  return {stack_cells(std::vector{GruCell::init(in, lower), GruCell::init(lower, upper)}),
          Linear::init(upper, Dim("value", 1))};
}

Series random_series(const ForecasterSizes& s, const Forecaster& model) {
  const Dim batch("batch", s.batch), time("time", s.steps);
  return {random_normal({batch, time, model.cells.in_dim()}),
          random_normal({batch, time, model.out.out})};
}

std::string sizes_of(const ForecasterSizes& s) {
  return str(" B=", s.batch, " T=", s.steps, " H=", s.hidden, " layers=2");
}

}  // namespace

Model forecaster(const ForecasterSizes& s) {
  manual_seed(1);
  const Forecaster model = random_forecaster(s);
  const Series series = random_series(s, model);
  const std::string name = "forecaster" + sizes_of(s);
  Model result{name, training(name, model, series, loss_of)};
  const int rows = s.batch * s.steps, gates = 3 * s.hidden;
  result.products = joined({{{rows, gates, s.in}, {s.in, gates, rows}},  // x needs no gradient
                            with_gradients({rows, gates, s.hidden}),
                            recurrent(s.steps, s.batch, s.hidden, gates),
                            recurrent(s.steps, s.batch, s.hidden, gates),
                            with_gradients({rows, 1, s.hidden})});
  if (libtorch_models())
    result.libtorch = [=] {
      return libtorch_models()->forecaster(s, numbers_of_tree(model), numbers_of_tree(series));
    };
  return result;
}

Model forecaster_forward(const ForecasterSizes& s) {
  manual_seed(1);
  const Forecaster model = random_forecaster(s);
  const Series series = random_series(s, model);
  const std::string name = "forecaster forward" + sizes_of(s);
  Model result{name, [=](bool is_traced) -> Step {
                 if (!is_traced) return [=] { return loss_of(model, series).item<float>(); };
                 return [=, traced = jit(loss_of, {.name = name})] {
                   return traced(model, series).item<float>();
                 };
               }};
  const int rows = s.batch * s.steps, gates = 3 * s.hidden;
  result.products = {{rows, gates, s.in},
                     {rows, gates, s.hidden},
                     {s.batch, gates, s.hidden, 1, 2 * s.steps},
                     {rows, 1, s.hidden}};
  return result;
}

}  // namespace reel::bench
