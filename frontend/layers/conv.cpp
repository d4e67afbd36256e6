#include "reel/frontend/layers/conv.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"

namespace reel {
namespace {

/// Returns the dims of a filter's taps. count: their product.
Dims taps_of(std::string_view layer, const std::vector<std::int64_t>& taps, std::int64_t& count) {
  if (taps.empty() || taps.size() > 3)
    throw ArgumentError(str(layer, ": taps along one to three axes, got ", taps.size()));
  Dims dims;
  for (const std::int64_t size : taps) {
    if (size < 1) throw ArgumentError(str(layer, ": taps must be positive, got ", size));
    dims.emplace_back("taps", size);
    count *= size;
  }
  return dims;
}

/// Adds the options of a layer to the options of conv.
template <class Layer>
Convolution convolution_of(const Layer& layer, const Dims& to) {
  return {.taps = layer.taps,
          .stride = layer.stride,
          .dilation = layer.dilation,
          .padding = layer.padding,
          .to = to};
}

}  // namespace

Conv Conv::init(const std::vector<std::int64_t>& taps, const Dim& in, const Dim& out,
                const ConvOptions& options) {
  detail::check_parameter_dim("Conv", "in", in);
  detail::check_parameter_dim("Conv", "out", out);
  detail::check_parameter_dtype("Conv", options.dtype);
  const std::int64_t groups = options.groups;
  if (groups < 1 || in.size() % groups || out.size() % groups)
    throw ArgumentError(str("Conv: ", groups, " groups do not divide in ", in, " and out ", out));
  std::int64_t count = 1;
  Dims dims = taps_of("Conv", taps, count);
  Conv layer;
  layer.taps = dims;
  dims.push_back(in / groups);
  // The filter cannot have one dim twice.
  dims.push_back(dims.back() == out ? Dim(out.name(), out.size()) : out);
  layer.filter = detail::initial_weight("Conv", options.filter, dims, count * in.size() / groups,
                                        count * out.size() / groups, options.dtype);
  if (options.has_bias) layer.bias = zeros({out}, options.dtype);
  layer.in = in;
  layer.out = out;
  layer.stride = options.stride;
  layer.dilation = options.dilation;
  layer.groups = groups;
  layer.padding = options.padding;
  layer.transposed = options.transposed;
  return layer;
}

Tensor Conv::operator()(const Tensor& x, const Axes& over, const Dims& to) const {
  detail::check_input("Conv", "x", x, in, detail::made_dtype("Conv", "filter", filter));
  Convolution options = convolution_of(*this, to);
  options.in = {in};
  options.groups = groups;
  options.transposed = transposed;
  Tensor y = conv(x, filter, over, options);
  const Dim& made = filter.dims().back();
  if (!(made == out)) y = rename(y, made, out);
  return bias ? y + *bias : y;
}

DepthwiseConv DepthwiseConv::init(const std::vector<std::int64_t>& taps, const Dim& channel,
                                  const ConvOptions& options) {
  detail::check_parameter_dim("DepthwiseConv", "channel", channel);
  detail::check_parameter_dtype("DepthwiseConv", options.dtype);
  if (options.groups != 1 || options.transposed)
    throw ArgumentError("DepthwiseConv: groups and transposed are options of Conv");
  std::int64_t count = 1;
  Dims dims = taps_of("DepthwiseConv", taps, count);
  DepthwiseConv layer;
  layer.taps = dims;
  dims.push_back(channel);
  layer.filter =
      detail::initial_weight("DepthwiseConv", options.filter, dims, count, count, options.dtype);
  if (options.has_bias) layer.bias = zeros({channel}, options.dtype);
  layer.channel = channel;
  layer.stride = options.stride;
  layer.dilation = options.dilation;
  layer.padding = options.padding;
  return layer;
}

Tensor DepthwiseConv::operator()(const Tensor& x, const Axes& over, const Dims& to) const {
  detail::check_input("DepthwiseConv", "x", x, channel,
                      detail::made_dtype("DepthwiseConv", "filter", filter));
  const Tensor y = conv(x, filter, over, convolution_of(*this, to));
  return bias ? y + *bias : y;
}

}  // namespace reel
