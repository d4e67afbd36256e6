// trace/executors/plan/tiles/tile_chains.h — finds the steps of a tile program that run as one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "reel/trace/executors/plan/tiles/tile_steps.h"

namespace reel {

/// A step on numbered values, reduced to its order.
struct StepInOrder {
  std::vector<int> in;
  int out = 0;
  int kind = 0;  ///< only steps of one kind form a chain; kNoChain: this step is in none
};
inline constexpr int kNoChain = -1;

/// Reorders steps so that the steps of a chain are adjacent. Chains are as long as dependencies on
/// other kinds, and fits(), allow. Returns groups in their new order: each is a chain or a single
/// step. Within a group steps keep their order.
std::vector<std::vector<int>> steps_in_chains(
    std::span<const StepInOrder> steps, int values,
    const std::function<bool(const std::vector<int>&)>& fits);

/// Returns true if a cell repeats: it has one element per row in a step on elements, or one element
/// in all in a step on a number per row.
using Repeats = std::function<bool(int cell, bool on_rows)>;

/// Replaces adjacent steps by chains with generated code if possible. Steps of a structure that
/// chain_cache() holds are not divided again. Requires that each step's result is read, or is an
/// output.
std::vector<TileStep> with_chains(std::vector<TileStep> steps, const std::vector<TileCell>& cells,
                                  const Repeats& repeats);

}  // namespace reel
