// examples/training/sharded_gradient.h — ShardedGradient: the gradient of a Trainer's loss on all
// ranks.
#pragma once

#include <reel/distributed.h>

#include <tuple>
#include <utility>
#include <vector>

/// Cuts a batch along its first dim, computes the gradients of this rank's shards, and reduces
/// them. The state that the loss returns is whole again on every rank.
struct ShardedGradient {
  const reel::World* world;

  template <class Loss>
  auto operator()(const Loss& loss) const {
    return [loss, world = world](const auto& model, const auto& state, const reel::Tensor& x,
                                 const reel::Tensor& target) {
      const reel::Dim batch = x.dim(0);
      const auto of_shard = [&loss](const auto& m, const auto& shard) {
        const auto& [s, part, part_target] = shard;
        auto [mean, next] = loss(m, s, part, part_target);
        const reel::Tensor count = reel::scalar(static_cast<double>(part.numel()), mean.dtype());
        return std::pair{reel::Weighted{mean * count, count}, std::move(next)};
      };
      const auto mine = world->shard(std::tuple{state, x, target}, batch);
      auto [loss_and_states, gradient] = world->value_and_grad(of_shard)(model, mine);
      return std::pair{std::pair{loss_and_states.first,
                                 whole(*world, loss_and_states.second.parts, state, batch)},
                       std::move(gradient)};
    };
  }

 private:
  /// Returns the states of all shards as one. like: a state of the whole batch.
  template <class State>
  static State whole(const reel::World& world, const std::vector<State>& parts, const State& like,
                     const reel::Dim& batch) {
    std::vector<reel::Tensors> of_leaves;
    for (const State& part : parts) {
      const reel::Tensors leaves = reel::tensors_of(reel::flatten(part));
      of_leaves.resize(leaves.size());
      for (std::size_t i = 0; i < leaves.size(); ++i) of_leaves[i].push_back(leaves[i]);
    }
    reel::Tensors joined;
    for (const reel::Tensors& of_shards : of_leaves) {
      const int axis = reel::find(of_shards[0].dims(), of_shards[0].dim(batch.name()));
      const reel::Tensor mine = reel::concat(of_shards, axis, reel::Dim(batch.name()));
      joined.push_back(reel::rename(world.all_gather(mine, axis), axis, batch));
    }
    return reel::unflatten(like, reel::with_tensors(reel::flatten(like), joined));
  }
};
