// distributed/sharded.h — Sharded, a batch in shards, and the gradient of a loss over them.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/identity.h"
#include "reel/core/runtime/random.h"
#include "reel/distributed/collective_trees.h"
#include "reel/frontend/optimisers/optimiser.h"
#include "reel/frontend/transforms/grad.h"

REEL_API_BEGIN
namespace reel {

/// The shards of a batch that this rank computes, in their order. A tree, so it may be an argument
/// of a jitted function.
template <class Tree>
struct Sharded {
  std::vector<Tree> parts;  ///< the shards of this rank, in order
  int first = 0;            ///< number of parts[0] among all shards
  int of = 0;               ///< number of all shards
};

namespace detail {

template <class T>
inline constexpr bool kIsSharded = false;
template <class T>
inline constexpr bool kIsSharded<Sharded<T>> = true;

template <class T>
inline constexpr bool kIsWeighted = std::is_same_v<T, Weighted>;
template <class Aux>
inline constexpr bool kIsWeighted<std::pair<Weighted, Aux>> = true;

/// Returns shard s of an argument; the argument itself if it is not sharded.
template <class T>
const auto& shard_of(const T& argument, std::size_t s) {
  if constexpr (kIsSharded<T>)
    return argument.parts[s];
  else
    return argument;
}

/// Numbers of this rank's shards, and of all.
struct OwnShards {
  int first = 0, count = 0, of = 0;
};
/// Throws ArgumentError unless the arguments have the same shards, and these are this rank's.
void check_shards(const std::vector<OwnShards>& arguments);

template <class... Args>
OwnShards shards_of(const Args&... args) {
  std::vector<OwnShards> found;
  const auto look = [&](const auto& argument) {
    if constexpr (kIsSharded<std::decay_t<decltype(argument)>>)
      found.push_back({argument.first, static_cast<int>(argument.parts.size()), argument.of});
  };
  (look(args), ...);
  check_shards(found);
  return found[0];
}

/// Stands for an optimiser without frozen parameters.
struct NoneFrozen {
  template <class Model>
  const Model& stop_frozen_gradients(const Model& model) const {
    return model;
  }
};

/// optimiser: its frozen parameters get gradients of zeros, or no table rows, which are not sent.
template <class F, class Optimiser>
auto sharded_value_and_grad(F f, Optimiser optimiser) {
  return [f, optimiser](const auto& model, const auto&... rest) {
    using Model = std::decay_t<decltype(model)>;
    using Value = std::decay_t<decltype(f(model, shard_of(rest, 0)...))>;
    static_assert((kIsSharded<std::decay_t<decltype(rest)>> || ...),
                  "World::value_and_grad(f) is called with a batch that World::shard() returned");
    static_assert(
        kIsWeighted<Value>,
        "the function given to World::value_and_grad returns Weighted{total, weight}, or "
        "std::pair{Weighted{total, weight}, auxiliary}: a mean of means is wrong if shards "
        "have other numbers of items");
    constexpr bool kHasAuxiliary = !std::is_same_v<Value, Weighted>;
    const OwnShards own = shards_of(rest...);
    const auto of_shard = reel::value_and_grad([&](const Model& m, const auto&... shard) {
      const Value value = f(optimiser.stop_frozen_gradients(m), shard...);
      if constexpr (kHasAuxiliary)
        return std::pair{value.first.total, value};
      else
        return std::pair{value.total, value};
    });
    std::vector<Value> values;
    std::vector<Model> gradients;
    {
      RandomScope keys;  // one for each shard, on any rank
      for (int s = 0; s < own.count; ++s) {
        keys.begin(own.first + s);
        auto [value, gradient] = of_shard(model, shard_of(rest, static_cast<std::size_t>(s))...);
        values.push_back(std::move(value.second));
        gradients.push_back(std::move(gradient));
      }
    }
    std::vector<Weighted> losses;
    std::vector<TreeTensors> trees;
    for (std::size_t s = 0; s < values.size(); ++s) {
      if constexpr (kHasAuxiliary)
        losses.push_back(values[s].first);
      else
        losses.push_back(values[s]);
      trees.push_back(tree_tensors(gradients[s]));
      if constexpr (!std::is_same_v<Optimiser, NoneFrozen>)
        trees.back() = without_frozen(std::move(trees.back()), OptimiserGroups::of(optimiser));
    }
    Tensors reduced = mean_of_shards(losses, trees, own.of);
    Tensor loss = std::move(reduced.back());
    reduced.pop_back();
    fill_empty(reduced, tree_tensors(gradients[0]).tensors);
    Model gradient = with_tree_tensors(gradients[0], reduced);
    if constexpr (kHasAuxiliary) {
      Sharded<typename Value::second_type> auxiliary{{}, own.first, own.of};
      for (Value& value : values) auxiliary.parts.push_back(std::move(value.second));
      return std::pair{std::pair{std::move(loss), std::move(auxiliary)}, std::move(gradient)};
    } else {
      return std::pair{std::move(loss), std::move(gradient)};
    }
  };
}

}  // namespace detail
}  // namespace reel
REEL_API_END
