#include "reel/frontend/layers/batch_norm.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/identity.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

BatchNorm BatchNorm::init(const Dim& channel, const BatchNormOptions& options) {
  detail::check_parameter_dim("BatchNorm", "channel", channel);
  detail::check_parameter_dtype("BatchNorm", options.dtype);
  if (!(options.epsilon >= 0))
    throw ArgumentError(str("BatchNorm: epsilon must not be negative, got ", options.epsilon));
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw ArgumentError(str("BatchNorm: momentum must be in [0, 1], got ", options.momentum));
  return {ones({channel}, options.dtype), zeros({channel}, options.dtype), channel,
          options.momentum, options.epsilon};
}

BatchNorm::State BatchNorm::initial_state() const {
  const DType dtype = detail::made_dtype("BatchNorm", "scale", scale);
  return {zeros({channel}, dtype), ones({channel}, dtype)};
}

std::pair<Tensor, BatchNorm::State> BatchNorm::operator()(
    const Tensor& x, const State& state, const Dims& over,
    const SumOverRanks& sum_over_ranks) const {
  const DType dtype = detail::made_dtype("BatchNorm", "scale", scale);
  detail::check_input("BatchNorm", "x", x, channel, dtype);
  detail::check_input("BatchNorm", "state.mean", state.mean, channel, dtype);
  detail::check_input("BatchNorm", "state.variance", state.variance, channel, dtype);
  const auto normalised = [&](const Tensor& centred, const Tensor& variance) {
    const Tensor factor = scale / sqrt(variance + epsilon);
    return centred * factor + bias;
  };
  if (!training) return {normalised(x - state.mean, state.variance), state};
  Dims others;
  for (const Dim& dim : x.dims())
    if (!(dim == channel)) others.push_back(dim);
  for (const Dim& dim : others)
    if (!over.empty() && !contains(canonical(over), dim))
      throw ShapeError(str("BatchNorm: over lacks ", dim, " of x ", x.type(),
                           "; list all dims besides ", channel, ", or none"));
  if (contains(canonical(over), channel))
    throw ShapeError(str("BatchNorm: over has ", channel,
                         ", whose elements are normalised alone; "
                         "list the other dims of x ",
                         x.type(), ", or none"));
  const Axes axes(others);
  const auto summed = [&](Tensors sums) {
    return sum_over_ranks ? sum_over_ranks(sums) : std::move(sums);
  };
  const auto total = [&](const Tensor& of) { return others.empty() ? of : sum(of, axes); };
  const Tensors first = summed({total(x), total(ones(others, x.dtype()))});
  const Tensor count = stop_gradient(first[1]), divisor = maximum(count, 1);
  const Tensor mean = first[0] / divisor, centred = x - mean;
  const Tensor variance = summed({total(square(centred))})[0] / divisor;
  const Tensor unbiased = variance * (divisor / maximum(count - 1, 1));
  const auto average = [&](const Tensor& old, const Tensor& now) {
    return where(count > 0, old + (stop_gradient(now) - old) * momentum, old);
  };
  return {normalised(centred, variance),
          {average(state.mean, mean), average(state.variance, unbiased)}};
}

}  // namespace reel
