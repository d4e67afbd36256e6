// frontend/layers/dropout_cell.h — DropoutCell: dropout between the layers of a stack.
#pragma once

#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/layers/dropout.h"

REEL_API_BEGIN
namespace reel {

/// A cell with dropout of its outputs, but not of its state: between the layers of stack_cells,
/// new elements are dropped in every time step. set_training reaches it.
/// Source: Zaremba et al. (2014), "Recurrent neural network regularization".
template <class Cell>
struct DropoutCell {
  /// The state of the cell.
  using State = typename Cell::State;

  Cell cell;        ///< computes y and the next state
  Dropout dropout;  ///< applied to y, not to the state

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return cell.in_dim(); }
  const Dim& out_dim() const { return cell.out_dim(); }
  /// Returns the initial state of the cell.
  State initial_state(const Dims& dims) const { return cell.initial_state(dims); }
  /// Runs one time step. Drops elements of y, not of the state, which it moves into the cell.
  std::pair<Tensor, State> operator()(const Tensor& x, State state) const {
    auto [y, next] = cell(x, std::move(state));
    return {dropout(y), std::move(next)};
  }
};

/// Returns the cell with dropout behind it: stack_cells(with_dropout(a, 0.2), b).
template <class Cell>
DropoutCell<Cell> with_dropout(Cell cell, double rate) {
  return {std::move(cell), Dropout{rate}};
}

}  // namespace reel
REEL_API_END
