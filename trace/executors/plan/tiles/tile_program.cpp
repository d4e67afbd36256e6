#include "reel/trace/executors/plan/tiles/tile_program.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "reel/core/op/take.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/runtime/parallel.h"
#include "reel/trace/executors/plan/tiles/tile_places.h"

namespace reel {

void TileProgram::run_unary(const Step& step, const Tile& tile, const char* from, char* to) {
  const std::int64_t from_row = row_of(step.in[0], tile) * step.in[0].item;
  const std::int64_t to_row = row_of(step.out, tile) * step.out.item;
  for (std::int64_t row = 0; row < tile.rows; ++row, from += from_row, to += to_row)
    step.unary(from, to, tile.columns);
}

void TileProgram::run_chain(const Step& step, const Tile& tile) const {
  ChainRun run;
  run.rows = step.is_flat ? 1 : tile.rows;
  run.columns = step.is_flat ? tile.rows * tile.columns : tile.columns;
  const std::size_t places = step.places.size();
  for (std::size_t i = 0; i < places; ++i) run.at[i] = at(step.places[i], tile);
  if (run.rows > 1)
    for (std::size_t i = 0; i < places; ++i)
      run.step[i] = row_of(step.places[i], tile) * step.places[i].item;
  step.code->run(run);
}

void TileProgram::run_tile(const Tile& tile) const {
  Tile of_rows = tile;
  of_rows.columns = tile.rows;
  of_rows.rows = 1;
  for (const Step& step : steps_) run_step(step, step.is_of_rows ? of_rows : tile);
}

inline void TileProgram::run_step(const Step& step, const Tile& tile) const {
  char* to = at(step.out, tile);
  switch (step.kind) {
    case Kind::flat_unary:
      step.unary(at(step.in[0], tile), to, tile.rows * tile.columns);
      break;
    case Kind::flat_binary:
      step.flat(at(step.in[0], tile), at(step.in[1], tile), to, tile.rows * tile.columns);
      break;
    case Kind::unary:
      run_unary(step, tile, at(step.in[0], tile), to);
      break;
    case Kind::rows: {
      PointwiseRows rows{
          .columns = tile.columns, .rows = tile.rows, .out_step = row_of(step.out, tile)};
      const void* in[kMaxOperands];
      for (int i = 0; i < step.operands; ++i) {
        in[i] = at(step.in[i], tile);
        rows.step[i] = row_of(step.in[i], tile);
        rows.repeats[i] = step.in[i].repeats;
      }
      step.rows(in, to, rows);
      break;
    }
    case Kind::copy: {
      const Place& from = step.in[0];
      copy_strided(static_cast<std::size_t>(from.item),
                   {{tile.rows, row_of(step.out, tile), row_of(from, tile)},
                    {tile.columns, 1, from.repeats ? 0 : 1}},
                   to, at(from, tile));
      break;
    }
    case Kind::sum: {
      const char* from = at(step.in[0], tile);
      const std::int64_t row = row_of(step.in[0], tile);
      if (row == tile.columns) {
        step.sum(from, to, {tile.rows, tile.columns, 1});
        break;
      }
      for (std::int64_t i = 0; i < tile.rows; ++i)
        step.sum(from + i * row * step.in[0].item, to + i * step.out.item, {1, tile.columns, 1});
      break;
    }
    case Kind::chain:
      run_chain(step, tile);
      break;
    case Kind::walk:
      run_walk_step(step, tile);
      break;
  }
}

void TileProgram::make_outputs(OpInputs in, std::span<const TensorType> types,
                               std::span<Tensor> out, bool updates) {
  if (updates) {
    for (std::size_t k = 0; k < out.size(); ++k) {
      const OpInput& input = in[static_cast<std::size_t>(updated_[k])];
      assert(may_take(input, types[k]));
      out[k] = take(input);
    }
    return;
  }
  const auto is_made = [](const Tensor& output) { return output.is_defined(); };
  if (std::all_of(out.begin(), out.end(), is_made)) return;  // in bodies of loops
  const std::vector<int>& chosen =
      choose_inputs([&](std::size_t k) { return !out[k].is_defined(); },
                    [&](std::size_t i, std::size_t k) { return may_take(in[i], types[k]); });
  for (std::size_t k = 0; k < out.size(); ++k)
    if (!out[k].is_defined())
      out[k] = chosen[k] < 0 ? Tensor(allocate_block(types[k]))
                             : take(in[static_cast<std::size_t>(chosen[k])]);
}

/// Returns true if the program is one chain of one tile: the update of a small parameter.
bool TileProgram::is_chain_on_tile() const {
  return is_one_tile_ && steps_.size() == 1 && steps_[0].kind == Kind::chain &&
         !steps_[0].is_of_rows;
}

/// Runs a program with is_chain_on_tile(): calls its code without the work for each tile and step.
void TileProgram::run_chain_on_tile(OpInputs in, std::span<const TensorType> types,
                                    std::span<Tensor> out, bool updates) {
  const Step& step = steps_[0];
  ChainRun run;
  run.rows = step.is_flat ? 1 : rows_;
  run.columns = step.is_flat ? rows_ * columns_ : columns_;
  std::size_t i = 0;  // operands come first; their tensors may become outputs
  for (; i < step.places.size() && step.places[i].location == Location::input; ++i)
    run.at[i] = in[step.places[i].index].tensor->data<char>() + step.places[i].offset;
  make_outputs(in, types, out, updates);
  for (; i < step.places.size(); ++i)
    run.at[i] = out[step.places[i].index].data<char>() + step.places[i].offset;
  if (run.rows > 1)
    for (i = 0; i < step.places.size(); ++i) run.step[i] = step.places[i].row * step.places[i].item;
  if (run.columns > 0) step.code->run(run);
}

std::optional<PlacedChain> TileProgram::placed_chain(OpInputs in,
                                                     std::span<const Tensor> out) const {
  if (!is_chain_on_tile() || columns_ == 0) return std::nullopt;
  const Step& step = steps_[0];
  PlacedChain chain{.code = step.code,
                    .rows = step.is_flat ? 1 : rows_,
                    .columns = step.is_flat ? rows_ * columns_ : columns_,
                    .places = {}};
  for (const Place& place : step.places)
    chain.places.push_back(
        {place.location == Location::input ? in[place.index].tensor : &out[place.index],
         place.offset, place.row * place.item});
  return chain;
}

void TileProgram::run(OpInputs in, std::span<const TensorType> types, std::span<Tensor> out,
                      bool updates) {
  if (is_chain_on_tile()) return run_chain_on_tile(in, types, out, updates);
  for (std::size_t i = 0; i < in.size(); ++i) inputs_[i] = in[i].tensor->data<char>();
  make_outputs(in, types, out, updates);
  if (columns_ == 0) return;
  for (std::size_t k = 0; k < out.size(); ++k) outputs_[k] = out[k].data<char>();
  run_tiles();
}

void TileProgram::run_tiles() {
  if (is_one_tile_) {
    Tile tile = tile_of_shard(0);
    tile.rows = rows_;
    tile.columns = columns_;
    run_tile(tile);
  } else if (shards_ == 1) {
    run_shard(0);
  } else {
    parallel_for(shards_, [this](int shard) { run_shard(shard); });
  }
}

bool TileProgram::is_same(const TileProgram& other) const {
  const auto all_but_memory = [](const TileProgram& of) {
    return std::tuple(of.rows_, of.columns_, of.tile_rows_, of.tile_columns_, of.shards_,
                      of.tile_bytes_, of.shard_bytes_, of.is_one_tile_, of.walk_, of.inputs_.size(),
                      of.outputs_.size());
  };
  return all_but_memory(*this) == all_but_memory(other) && steps_ == other.steps_ &&
         outer_ == other.outer_ && pools_ == other.pools_ && output_places_ == other.output_places_;
}

std::int64_t TileProgram::tiles_in_all() const {
  std::int64_t count = row_tiles() * column_tiles();
  for (const std::int64_t size : outer_) count *= size;
  return count;
}

void TileProgram::run_shard(int shard) const {
  if (walk_.axis != Walk::kNone) return run_walks(shard);
  const std::int64_t all = tiles_in_all(), begin = all * shard / shards_;
  const std::int64_t end = all * (shard + 1) / shards_;
  Tile tile = tile_at(begin, shard);
  for (std::int64_t number = begin;;) {
    tile.rows = std::min(tile_rows_, rows_ - tile.row);
    tile.columns = std::min(tile_columns_, columns_ - tile.column);
    run_tile(tile);
    if (++number == end) return;
    advance(tile);
  }
}

/// Returns a tile without a place, for the operands of a run.
TileProgram::Tile TileProgram::tile_of_shard(int shard) const {
  return {
      .tiles = tiles_ + shard * shard_bytes_, .inputs = inputs_.data(), .outputs = outputs_.data()};
}

TileProgram::Tile TileProgram::tile_at(std::int64_t number, int shard) const {
  Tile tile = tile_of_shard(shard);
  if (number == 0) return tile;
  const auto take = [&](std::int64_t count) {
    const std::int64_t index = number % count;
    number /= count;
    return index;
  };
  tile.column = take(column_tiles()) * tile_columns_;
  tile.row = take(row_tiles()) * tile_rows_;
  for (std::size_t axis = outer_.size(); axis-- > 0;) tile.outer_index[axis] = take(outer_[axis]);
  return tile;
}

void TileProgram::advance(Tile& tile) const {
  if ((tile.column += tile_columns_) < columns_) return;
  tile.column = 0;
  if ((tile.row += tile_rows_) < rows_) return;
  tile.row = 0;
  for (std::size_t axis = outer_.size(); axis-- > 0; tile.outer_index[axis] = 0)
    if (++tile.outer_index[axis] < outer_[axis]) return;
}

}  // namespace reel
