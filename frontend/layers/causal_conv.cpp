#include "reel/frontend/layers/causal_conv.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/convolutions.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/made_parameter.h"
#include "reel/frontend/loops/whole_function.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {
namespace {

constexpr std::string_view kName = "CausalConv";

/// Returns a layer without parameters.
CausalConv without_filter(std::int64_t taps, const Dim& in, const Dim& out,
                          const CausalConvOptions& options) {
  detail::check_parameter_dim(kName, "in", in);
  detail::check_parameter_dim(kName, "out", out);
  detail::check_parameter_dtype(kName, options.dtype);
  if (taps < 1 || options.dilation < 1)
    throw ArgumentError(
        str(kName, ": taps ", taps, " and dilation ", options.dilation, " must be positive"));
  CausalConv layer;
  const std::int64_t past = (taps - 1) * options.dilation;
  layer.taps = Dim("taps", taps);
  layer.in = in;
  layer.out = out;
  layer.past = Dim("past", past);
  layer.window = Dim("window", past + 1);
  layer.dilation = options.dilation;
  if (options.has_bias) layer.bias = zeros({out}, options.dtype);
  return layer;
}

/// Convolves along a dim with zeros in front of it, or with the elements that are there.
Tensor convolved(const CausalConv& layer, const Tensor& x, const Dim& over,
                 const WindowPadding& padding) {
  const bool is_depthwise = layer.filter.rank() == 2;
  Tensor y = conv(x, layer.filter, over,
                  {.taps = {layer.taps},
                   .in = is_depthwise ? Dims{} : Dims{layer.in},
                   .dilation = layer.dilation,
                   .padding = padding});
  const Dim& made = layer.filter.dims().back();
  if (!(made == layer.out)) y = rename(y, made, layer.out);
  return layer.bias ? y + *layer.bias : y;
}

/// time: the dim of x that the state lacks; nullopt in a time step.
void check_state(const CausalConv& layer, const Tensor& x, const Tensor& state,
                 const std::optional<Dim>& time) {
  detail::check_input(kName, "the state", state, layer.in,
                      detail::made_dtype(kName, "filter", layer.filter));
  if (!contains(state.dims(), layer.past))
    throw ShapeError(str(kName, ": the state ", state.type(), " has no dim ", layer.past,
                         "; make it with initial_state"));
  const Dims of_x = without(x.dims(), time ? Dims{canonical(*time)} : Dims{}),
             of_state = without(state.dims(), {layer.past});
  for (const auto& [lacking, other, name] :
       {std::tuple{of_state, of_x, "the state"}, std::tuple{of_x, of_state, "x"}})
    if (const Dims missing = without(other, lacking); !missing.empty())
      throw ShapeError(str(kName, ": ", name, " lacks the dim ", missing[0], ": x ", x.type(),
                           ", state ", state.type(), "; make the state with initial_state, of the ",
                           "dims of x without ", layer.in, time ? str(" and ", *time) : "",
                           time ? "" : "; for a whole sequence, call layer(x, time, state)"));
}

/// Returns the call with the roles that whole_function.h lists.
WholeFunction as_whole(const CausalConv& layer, const Tensor& x, const Dim& time,
                       const Tensor& state) {
  return {"causal_conv",
          {x, layer.filter, layer.bias.value_or(Tensor()), state},
          {canonical(time), canonical(layer.in), canonical(layer.past)},
          {static_cast<double>(layer.dilation)}};
}

}  // namespace

CausalConv CausalConv::init(std::int64_t taps, const Dim& in, const Dim& out,
                            const CausalConvOptions& options) {
  CausalConv layer = without_filter(taps, in, out, options);
  // The filter cannot have one dim twice.
  const Dim made = in == out ? Dim(out.name(), out.size()) : out;
  layer.filter = detail::initial_weight(kName, options.filter, {layer.taps, in, made},
                                        taps * in.size(), taps * out.size(), options.dtype);
  return layer;
}

CausalConv CausalConv::depthwise(std::int64_t taps, const Dim& channel,
                                 const CausalConvOptions& options) {
  CausalConv layer = without_filter(taps, channel, channel, options);
  layer.filter = detail::initial_weight(kName, options.filter, {layer.taps, channel}, taps, taps,
                                        options.dtype);
  return layer;
}

CausalConv::State CausalConv::initial_state(const Dims& dims) const {
  Dims all = dims;
  all.push_back(past);
  return detail::zero_state(kName, all, in, filter.dtype());
}

std::pair<Tensor, CausalConv::State> CausalConv::operator()(const Tensor& x,
                                                            const State& state) const {
  detail::check_input(kName, "x", x, in, detail::made_dtype(kName, "filter", filter));
  check_state(*this, x, state, {});
  const Tensor seen = concat({state, expand(x, Dim("one", 1))}, past, window);
  const Tensor y = convolved(*this, seen, window, WindowPadding::valid);
  return {squeeze(y, window - (window.size() - 1)), slice(seen, window, 1, {}, past)};
}

Tensor CausalConv::operator()(const Tensor& x, const Dim& time) const {
  detail::check_input(kName, "x", x, in, detail::made_dtype(kName, "filter", filter));
  const auto run = [&] { return convolved(*this, x, time, WindowPadding::causal); };
  if (!WholeFunctions::are_recorded()) return run();
  return whole_function(as_whole(*this, x, time, {}), [&] { return Tensors{run()}; })[0];
}

std::pair<Tensor, CausalConv::State> CausalConv::operator()(const Tensor& x, const Dim& time,
                                                            const State& state) const {
  detail::check_input(kName, "x", x, in, detail::made_dtype(kName, "filter", filter));
  check_state(*this, x, state, time);
  const auto run = [&]() -> Tensors {
    const Dim both = time + past.size();
    const Tensor seen = concat({state, x}, past, both);
    const Tensor y = convolved(*this, seen, both, WindowPadding::valid);
    if (past.size() == 0) return {y, state};
    return {y, slice(seen, both, -past.size(), {}, past)};
  };
  const Tensors made = WholeFunctions::are_recorded() && past.size() > 0
                           ? whole_function(as_whole(*this, x, time, state), run)
                           : run();
  return {made[0], made[1]};
}

}  // namespace reel
