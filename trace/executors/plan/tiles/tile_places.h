// trace/executors/plan/tiles/tile_places.h — where operands of a TileProgram's steps lie in a tile.
//
// Included by the files that run steps.
#pragma once

#include "reel/trace/executors/plan/tiles/tile_program.h"

namespace reel {

inline char* TileProgram::at(const Place& place, const Tile& tile) const {
  if (place.location == Location::tile) return tile.tiles + place.offset;
  char* data =
      (place.location == Location::input ? tile.inputs : tile.outputs)[place.index] + place.offset;
  if (is_one_tile_) return data;
  std::int64_t elements = tile.row * place.row + (place.repeats ? 0 : tile.column);
  for (std::size_t i = 0; i < place.outer.size(); ++i)
    elements += tile.outer_index[i] * place.outer[i];
  return data + elements * place.item;
}

/// Returns the elements from one row to the next.
inline std::int64_t TileProgram::row_of(const Place& place, const Tile& tile) {
  return place.location == Location::tile && !place.repeats ? tile.columns : place.row;
}

}  // namespace reel
