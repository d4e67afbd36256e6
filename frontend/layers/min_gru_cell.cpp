#include "reel/frontend/layers/min_gru_cell.h"

#include "reel/core/functions/scans.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

MinGruCell MinGruCell::init(const Dim& in, const Dim& hidden, const MinGruCellOptions& options) {
  detail::check_parameter_dim("MinGruCell", "in", in);
  detail::check_parameter_dim("MinGruCell", "hidden", hidden);
  Linear update = Linear::init(in, hidden, {.dtype = options.dtype});
  return {std::move(update), Linear::init(in, hidden, {.dtype = options.dtype}), in, hidden};
}

MinGruCell::State MinGruCell::initial_state(const Dims& dims) const {
  return detail::zero_state("MinGruCell", dims, hidden,
                            detail::made_dtype("MinGruCell", "update.weight", update.weight));
}

std::pair<Tensor, MinGruCell::State> MinGruCell::operator()(const Tensor& x, const State& h) const {
  detail::check_input("MinGruCell", "x", x, in,
                      detail::made_dtype("MinGruCell", "update.weight", update.weight));
  detail::check_state("MinGruCell", x, in, "the state", h, hidden, update.weight.dtype());
  const Tensor z = sigmoid(update(x));
  const Tensor added = z * candidate(x);
  const Tensor next = (1 - z) * h + added;
  return {next, next};
}

Tensor MinGruCell::operator()(const Tensor& x, const Dim& time,
                              const std::optional<State>& h) const {
  detail::check_input("MinGruCell", "x", x, in,
                      detail::made_dtype("MinGruCell", "update.weight", update.weight));
  const Tensor z = sigmoid(update(x));
  return linear_scan(1 - z, z, h, time, {.input = candidate(x)});
}

}  // namespace reel
