// trace/executors/plan/tile_chains.h — which steps of a tile program are done as one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "reel/trace/executors/plan/tile_steps.h"

namespace reel {

/// A step on numbered values, as far as its order goes.
struct StepInOrder {
  std::vector<int> in;
  int out = 0;
  int kind = 0;  ///< only steps of one kind make a chain; kNoChain: this one makes none
};
inline constexpr int kNoChain = -1;

/// An order of the steps in which those that may be one chain stand together: as many as there can
/// be without waiting for a step of another kind, and as fits() allows. Each group is a chain, or
/// one step by itself; in a group steps keep their order.
std::vector<std::vector<int>> steps_in_chains(
    std::span<const StepInOrder> steps, int values,
    const std::function<bool(const std::vector<int>&)>& fits);

/// Whether a cell is one element a row, for a step on elements, or one for all rows, for a step on
/// a number for each.
using Repeats = std::function<bool(int cell, bool on_rows)>;

/// The steps of a tile program with those that code can be made for as chains, where several stand
/// together. Each step's result is read, or an output.
std::vector<TileStep> with_chains(std::vector<TileStep> steps, const std::vector<TileCell>& cells,
                                  const Repeats& repeats);

}  // namespace reel
