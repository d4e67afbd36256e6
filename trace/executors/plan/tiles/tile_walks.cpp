// Linear recurrences in a tile program: tiles in the order of time, with states between them.
#include <algorithm>
#include <cstring>

#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/kernels/linear_scan_table.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/trace/executors/plan/tiles/tile_places.h"

namespace reel {
namespace {

const LinearScanTable& linear_scan_table() {
  static const LinearScanTable& table = for_this_processor(REEL_TABLES(linear_scans));
  return table;
}

constexpr double kZeros[kScanColumns] = {};

}  // namespace

/// Returns the number of tiles that run one after the other.
std::int64_t TileProgram::tiles_of_walk() const {
  if (walk_.axis == Walk::kNone) return 1;
  return walk_.axis == Walk::kRows ? row_tiles() : outer_[static_cast<std::size_t>(walk_.axis)];
}

/// Runs the shard's walks, each over all of the time.
void TileProgram::run_walks(int shard) const {
  const std::int64_t steps = tiles_of_walk(), all = tiles_in_all() / steps;
  const bool has_rows = walk_.axis == Walk::kRows;
  for (std::int64_t walk = all * shard / shards_; walk < all * (shard + 1) / shards_; ++walk) {
    Tile tile = tile_of_shard(shard);
    std::int64_t number = walk;
    const auto take = [&](std::int64_t count) {
      const std::int64_t index = number % count;
      number /= count;
      return index;
    };
    tile.column = take(column_tiles()) * tile_columns_;
    tile.columns = std::min(tile_columns_, columns_ - tile.column);
    if (!has_rows) tile.row = take(row_tiles()) * tile_rows_;
    for (std::size_t axis = outer_.size(); axis-- > 0;)
      if (static_cast<int>(axis) != walk_.axis) tile.outer_index[axis] = take(outer_[axis]);
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t at = walk_.is_reverse ? steps - 1 - step : step;
      if (has_rows)
        tile.row = at * tile_rows_;
      else
        tile.outer_index[walk_.axis] = at;
      tile.rows = std::min(tile_rows_, rows_ - tile.row);
      tile.is_first = step == 0;
      run_tile(tile);
    }
  }
}

/// Writes the states before the first step of a walk, which lie one behind the other.
void TileProgram::begin_states(const Step& step, const Tile& tile, char* states) const {
  const bool has_rows = walk_.axis == Walk::kRows;
  const std::int64_t rows = has_rows ? 1 : tile.rows;
  if (step.operands < 3) {
    // c + -0 is c, to the bit.
    const double none = step.walk == TileWalk::cotangents ? -0. : 0.;
    const float none_of_floats = static_cast<float>(none);
    fill_items(static_cast<std::size_t>(step.out.item), states, rows * tile.columns,
               step.is_double ? static_cast<const void*>(&none) : &none_of_floats);
    return;
  }
  const Place& initial = step.in[2];
  copy_strided(
      static_cast<std::size_t>(initial.item),
      {{rows, tile.columns, row_of(initial, tile)}, {tile.columns, 1, initial.repeats ? 0 : 1}},
      states, at(initial, tile));
}

/// Runs a step of a recurrence with the loops of linear_scan's kernel. Time are the rows of the
/// tile, or a tile is a single time step.
void TileProgram::run_walk_step(const Step& step, const Tile& tile) const {
  if (step.walk == TileWalk::lag) return run_lag(step, tile);
  const bool has_rows = walk_.axis == Walk::kRows, is_gradient = step.walk == TileWalk::cotangents;
  char* const states = tile.tiles + step.state;
  if (tile.is_first) begin_states(step, tile, states);
  const std::int64_t steps = has_rows ? tile.rows : 1,
                     lines = has_rows || step.is_flat ? 1 : tile.rows,
                     width = has_rows || !step.is_flat ? tile.columns : tile.rows * tile.columns;
  // The rows of a place, in the order of the walk.
  const auto rows_at = [&](const Place& place, std::int64_t line,
                           std::int64_t column) -> ScanRowsOut {
    const std::int64_t row = row_of(place, tile);
    const std::int64_t first = has_rows ? (walk_.is_reverse ? steps - 1 : 0) : line;
    return {at(place, tile) + (first * row + column) * place.item, walk_.is_reverse ? -row : row};
  };
  for (std::int64_t line = 0; line < lines; ++line)
    for (std::int64_t column = 0; column < width; column += kScanColumns) {
      const std::int64_t some = std::min(kScanColumns, width - column);
      const ScanRowsOut a = rows_at(step.in[0], line, column),
                        b = rows_at(step.in[1], line, column),
                        out = rows_at(step.out, line, column);
      char* const state = states + (line * tile.columns + column) * step.out.item;
      if (is_gradient) {
        linear_scan_table().gradient[step.is_double]({.steps = steps,
                                                      .width = some,
                                                      .a = {a.first, a.step},
                                                      .cotangent = {b.first, b.step},
                                                      .h = {},
                                                      .b = {},
                                                      .x = {},
                                                      .initial = kZeros,
                                                      .a_out = {},
                                                      .b_out = out,
                                                      .x_out = {},
                                                      .initial_out = state,
                                                      .state = state});
        continue;
      }
      linear_scan_table().forward[step.is_double](
          {steps, some, {a.first, a.step}, {b.first, b.step}, {}, state, out});
      std::memcpy(state,
                  static_cast<const char*>(out.first) + (steps - 1) * out.step * step.out.item,
                  static_cast<std::size_t>(some * step.out.item));
    }
}

/// Writes the states of the step before, in the order of the recurrence. Its gradient walks here,
/// from the other end.
void TileProgram::run_lag(const Step& step, const Tile& tile) const {
  const Place &states = step.in[0], &out = step.out;
  const std::int64_t before = walk_.is_reverse ? -1 : 1, item = out.item;
  const std::int64_t out_row = row_of(out, tile);
  const bool has_rows = walk_.axis == Walk::kRows;
  std::int64_t time = 0, last = 0, lag = 0;  // the first time step is 0, or the last one
  if (has_rows) {
    time = tile.row, last = rows_ - 1, lag = row_of(states, tile);
  } else if (walk_.axis != Walk::kNone) {
    const auto axis = static_cast<std::size_t>(walk_.axis);
    time = tile.outer_index[axis], last = outer_[axis] - 1, lag = states.outer[axis];
  }
  // Rows that lie behind each other are one copy.
  const std::int64_t edge = walk_.is_reverse ? 0 : last;
  const std::int64_t at_edge = has_rows ? edge - time : (time == edge ? 0 : -1);
  for (std::int64_t row = 0; row < tile.rows;) {
    const bool is_at_edge = has_rows ? row == at_edge : at_edge == 0;
    const bool is_flat =
        !is_at_edge && step.is_flat && (!has_rows || at_edge < row || at_edge >= tile.rows);
    const std::int64_t rows = is_flat ? tile.rows - row : 1;
    char* const to = at(out, tile) + row * out_row * item;
    const auto bytes = static_cast<std::size_t>(rows * tile.columns * item);
    if (!is_at_edge) {
      std::memcpy(to, at(states, tile) + (row * row_of(states, tile) + before * lag) * item, bytes);
    } else if (step.operands < 2) {
      std::memset(to, 0, bytes);
    } else {
      const Place& initial = step.in[1];
      copy_strided(static_cast<std::size_t>(item), {{tile.columns, 1, initial.repeats ? 0 : 1}}, to,
                   at(initial, tile) + row * row_of(initial, tile) * item);
    }
    row += rows;
  }
}

}  // namespace reel
