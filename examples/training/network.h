// examples/training/network.h — Network: stacked recurrent cells.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <vector>

/// Cell: reel::LstmCell, reel::GruCell or reel::RnnCell.
template <class Cell>
using Network = reel::StackedCells<std::vector<Cell>>;

template <class Cell>
Network<Cell> make_network(const reel::Dim& in, std::int64_t hidden_size, int layers) {
  std::vector<Cell> cells;
  for (int i = 0; i < layers; ++i)
    cells.push_back(Cell::init(i ? cells.back().out_dim() : in, reel::Dim("hidden", hidden_size)));
  return reel::stack_cells(cells);
}
