// frontend/layers/bidirectional_stack.h — bidirectional_stack: bidirectional layers, one above
// another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/base/visibility.h"
#include "reel/frontend/layers/bidirectional.h"
#include "reel/frontend/layers/dropout.h"

REEL_API_BEGIN
namespace reel {

/// Options of bidirectional_stack.
struct BidirectionalStackOptions {
  std::optional<Dim> out{};     ///< the features of the last layer; default: a new dim
  Dropout between{.rate = 0};   ///< dropout between layers
  Checkpoint checkpoint = {};   ///< selects each cell's saved residuals, as for scan
  SwapMemory swap_memory = {};  ///< true: residuals may be spilled to a file
};

/// The result of bidirectional_stack; final states by layer, the lowest first.
template <class Forward, class Backward>
struct BidirectionalLayers {
  Tensor outputs;                  ///< of the last layer
  std::vector<Forward> forward;    ///< final states, from the first layer to the last
  std::vector<Backward> backward;  ///< final states, from the first layer to the last
};

/// Runs bidirectional layers, each over the outputs of the layer below: both cells of a layer see
/// the features of both directions.
///
/// layers: pairs of a forward and a backward cell, the lowest first. Above the lowest layer the
/// size of in_dim() of both cells is the sum of the sizes of out_dim() below, and it is one Dim.
/// Throws ArgumentError if there is no layer, ShapeError naming the layer if a size is another;
/// otherwise as bidirectional. Source: Graves et al.
/// (2013), "Speech recognition with deep recurrent neural networks".
template <class Forward, class Backward>
BidirectionalLayers<typename Forward::State, typename Backward::State> bidirectional_stack(
    const std::vector<std::pair<Forward, Backward>>& layers, const Tensor& xs, const Dim& dim,
    const BidirectionalStackOptions& options = {}) {
  if (layers.empty()) throw ArgumentError("bidirectional_stack: takes at least one layer");
  BidirectionalLayers<typename Forward::State, typename Backward::State> result;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Forward& forward = layers[i].first;
    const Backward& backward = layers[i].second;
    const bool is_last = i + 1 == layers.size();
    const std::string above = is_last ? "options.out" : str("in_dim() of layer ", i + 1);
    const auto check = [&](const Dim& out) {
      detail::check_features(str("bidirectional_stack: layer ", i), forward.out_dim(),
                             backward.out_dim(), out, above);
    };
    if (!is_last) check(layers[i + 1].first.in_dim());
    if (!is_last) check(layers[i + 1].second.in_dim());
    if (is_last && options.out) check(*options.out);
  }
  result.outputs = xs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool is_last = i + 1 == layers.size();
    const auto& [forward, backward] = layers[i];
    if (i > 0 && options.between.rate > 0) result.outputs = options.between(result.outputs);
    BidirectionalOptions of_layer{
        .out = options.out, .checkpoint = options.checkpoint, .swap_memory = options.swap_memory};
    if (!is_last) of_layer.out = layers[i + 1].first.in_dim();
    auto made = bidirectional(forward, backward, result.outputs, dim, of_layer);
    result.outputs = std::move(made.outputs);
    result.forward.push_back(std::move(made.forward));
    result.backward.push_back(std::move(made.backward));
  }
  return result;
}

}  // namespace reel
REEL_API_END
