#include "reel/frontend/layers/group_norm.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {

GroupNorm GroupNorm::init(std::int64_t groups, const Dim& channel,
                          const GroupNormOptions& options) {
  detail::check_parameter_dim("GroupNorm", "channel", channel);
  detail::check_parameter_dtype("GroupNorm", options.dtype);
  if (groups < 1 || channel.size() % groups)
    throw ArgumentError(str("GroupNorm: ", groups, " groups do not divide channel ", channel));
  if (!(options.epsilon >= 0))
    throw ArgumentError(str("GroupNorm: epsilon must not be negative, got ", options.epsilon));
  return {
      ones({channel}, options.dtype), zeros({channel}, options.dtype),           channel,
      Dim("group", groups),           Dim("per_group", channel.size() / groups), options.epsilon};
}

Tensor GroupNorm::operator()(const Tensor& x, const Dims& over) const {
  detail::check_input("GroupNorm", "x", x, channel,
                      detail::made_dtype("GroupNorm", "scale", scale));
  if (contains(over, channel))
    throw ArgumentError(
        str("GroupNorm: over lists the dim of channels, ", channel, "; give the other dims only"));
  // All channels have equally many elements along `over`, so the mean of a group is the mean of its
  // channels' means.
  const auto group_mean = [&](const Tensor& of) {
    const Tensor per_channel = over.empty() ? of : mean(of, Axes(over));
    return mean(split_dim(per_channel, channel, {group, per_group}), per_group);
  };
  const auto to_channels = [&](const Tensor& of) {
    Dims dims = of.dims();
    dims.push_back(per_group);
    return merge_dims(expand(of, dims), {group, per_group}, channel);
  };
  const Tensor centred = x - to_channels(group_mean(x));
  const Tensor normaliser = 1.0 / sqrt(group_mean(square(centred)) + epsilon);
  return centred * to_channels(normaliser) * scale + bias;
}

}  // namespace reel
