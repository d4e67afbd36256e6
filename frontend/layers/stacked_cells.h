// frontend/layers/stacked_cells.h — stack_cells: several cells, one above another, as one cell.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Cells that each take the outputs of the cell below. The state is a tuple of their states.
template <class... Cells>
struct StackedCells {
  /// The states of all cells.
  using State = std::tuple<typename Cells::State...>;

  std::tuple<Cells...> cells;  ///< from the first layer to the last

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return std::get<0>(cells).in_dim(); }
  const Dim& out_dim() const { return std::get<sizeof...(Cells) - 1>(cells).out_dim(); }
  /// Returns the initial states of all cells.
  State initial_state(const Dims& dims) const {
    return std::apply([&](const auto&... cell) { return State{cell.initial_state(dims)...}; },
                      cells);
  }
  /// Runs one time step of each cell, on the outputs of the cell before. Moves the state into the
  /// cells, which may write to it in place.
  std::pair<Tensor, State> operator()(const Tensor& x, State state) const {
    std::pair<Tensor, State> result{x, std::move(state)};
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((std::tie(result.first, std::get<I>(result.second)) =
            std::get<I>(cells)(result.first, std::move(std::get<I>(result.second)))),
       ...);
    }
    (std::index_sequence_for<Cells...>{});
    return result;
  }
};

/// Cells of one type, as many as the vector has. The state is a vector of their states.
template <class Cell>
struct StackedCells<std::vector<Cell>> {
  /// The states of all cells.
  using State = std::vector<typename Cell::State>;

  std::vector<Cell> cells;  ///< from the first layer to the last

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return cells.front().in_dim(); }
  const Dim& out_dim() const { return cells.back().out_dim(); }
  /// Returns the initial states of all cells.
  State initial_state(const Dims& dims) const {
    State state;
    for (const Cell& cell : cells) state.push_back(cell.initial_state(dims));
    return state;
  }
  /// Runs one time step of each cell, on the outputs of the cell before. Moves the state into the
  /// cells, which may write to it in place.
  std::pair<Tensor, State> operator()(const Tensor& x, State state) const {
    std::pair<Tensor, State> result{x, std::move(state)};
    for (std::size_t i = 0; i < cells.size(); ++i)
      std::tie(result.first, result.second[i]) =
          cells[i](result.first, std::move(result.second[i]));
    return result;
  }
};

/// Returns one cell made of several, the lowest first. Requires: each cell's out_dim is the next
/// one's in_dim.
template <class... Cells>
StackedCells<Cells...> stack_cells(const Cells&... cells) {
  static_assert(sizeof...(Cells) > 0, "stack_cells takes at least one cell");
  return {std::tuple<Cells...>(cells...)};
}
/// Throws ArgumentError if `cells` is empty.
template <class Cell>
StackedCells<std::vector<Cell>> stack_cells(const std::vector<Cell>& cells) {
  if (cells.empty()) throw ArgumentError("stack_cells: takes at least one cell");
  return {cells};
}

}  // namespace reel
REEL_API_END
