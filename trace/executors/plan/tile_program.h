// trace/executors/plan/tile_program.h — TileProgram, a fused op made ready for inputs of certain
// sizes.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "reel/core/graph.h"
#include "reel/core/ops/broadcast.h"
#include "reel/core/ops/pointwise_code.h"
#include "reel/core/ops/pointwise_table.h"
#include "reel/core/ops/reduction_table.h"
#include "reel/core/tensor.h"
#include "reel/trace/executors/plan/first_below.h"

namespace reel {

/// The ops of a fused op, done one after the other for a thousand elements at a time, or for some
/// whole rows where these are summed over: what one hands to the next stays in the cache, or in
/// registers where they are a chain of simple ops, and the bits are those of each op done for
/// itself.
///
/// Elements are walked over in the order of the smallest values there are (`space`). A value that a
/// split takes apart, or a concat puts together, is computed in parts of that size; split, concat
/// and spread only say where elements lie. Where rows are summed over, a tile has whole rows, and
/// steps on the sums work on a number for each. Programs of many elements and steps run in parts,
/// on several threads: their sizes decide, and bits depend on no part.
class TileProgram {
 public:
  /// body: of FusedAttrs. env: what its free symbols stand for.
  TileProgram(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env);

  /// in, out: those of the op. An output that is not there is made, of its type, in place of an
  /// input where that can be done: a temporary that nobody else holds, read for the last time where
  /// the output is written. One run at a time.
  void run(OpInputs in, std::span<const TensorType> types, std::span<Tensor> out);
  /// Chooses the inputs in whose place a run makes outputs -> by output its input, or -1. No input
  /// is chosen twice. is_wanted(k): output k has to be made. gives(i, k): the tensor of input i may
  /// become output k, as far as the program does not decide that.
  template <class Wanted, class Gives>
  const std::vector<int>& choose_inputs(const Wanted& is_wanted, const Gives& gives);

 private:
  class Builder;

  enum class Home : std::uint8_t { input, output, tile };
  /// Where an operand or result of a step lies beside the elements that are walked over.
  struct Place {
    Home home = Home::tile;
    bool repeats = false;     ///< along columns
    std::uint32_t index = 0;  ///< of the input or output
    std::int64_t offset = 0;  ///< bytes; of a tile, from the first one
    std::int64_t row = 0;     ///< elements from one row to the next; of a tile, its columns,
                              ///< where it does not repeat
    std::int64_t item = 0;    ///< bytes of an element
    std::vector<std::int64_t> outer;  ///< elements, by outer axis
  };
  enum class Kind : std::uint8_t {
    flat_unary,   ///< all operands lie without gaps within a tile, and none repeats
    flat_binary,  ///< the same
    unary,
    rows,
    copy,
    sum,    ///< over each row
    chain,  ///< of simple steps, as machine code
  };
  struct Step {
    Kind kind;
    UnaryLoop unary = nullptr;
    FlatLoop flat = nullptr;
    RowsLoop rows = nullptr;
    ReductionLoop sum = nullptr;
    bool is_of_rows = false;  ///< on a number for each row, as if these were columns
    int operands = 0;
    Place in[kMostOperands], out;
    // Of a chain only:
    std::shared_ptr<const PointwiseCode> code;
    std::vector<Place> places;  ///< operands, then results
    bool is_flat = false;       ///< all lie without gaps within a tile, and none repeats
  };
  /// The elements that are walked over: outer axes, then rows of columns.
  struct Tile {
    std::int64_t outer_index[kMostBroadcastAxes];
    std::int64_t row, column, rows, columns;
    char* tiles;  ///< of its part
  };

  /// Inputs that outputs of the same type may lie over, if they were read last before these are
  /// made.
  struct Pool {
    std::vector<std::uint32_t> inputs;  ///< in their order
    FirstBelow last_reads;              ///< of these inputs
  };
  /// What an output may lie over.
  struct OutputPlace {
    int pool = -1;                           ///< none: -1
    int made_by = 0;                         ///< if it has a pool: the step
    int updated = -1;                        ///< the input that comes before all others, or -1
    std::vector<std::uint32_t> others = {};  ///< inputs of no pool; of an output of none, all
  };

  template <class Gives>
  int choose_input(std::size_t k, const Gives& gives);
  void make_outputs(OpInputs in, std::span<const TensorType> types, std::span<Tensor> out);
  std::int64_t row_tiles() const { return (rows_ + tile_rows_ - 1) / tile_rows_; }
  std::int64_t column_tiles() const { return (columns_ + tile_columns_ - 1) / tile_columns_; }
  std::int64_t tiles_in_all() const;
  void run_part(int part) const;
  Tile tile_at(std::int64_t number, char* tiles) const;
  void advance(Tile& tile) const;
  char* at(const Place& place, const Tile& tile) const;
  static std::int64_t row_of(const Place& place, const Tile& tile);
  void run_tile(const Tile& tile) const;
  void run_step(const Step& step, const Tile& tile) const;
  void run_chain(const Step& step, const Tile& tile) const;
  static void run_unary(const Step& step, const Tile& tile, const char* from, char* to);

  std::vector<Step> steps_;
  std::vector<std::int64_t> outer_;  ///< sizes
  bool is_one_tile_ = false;
  std::int64_t rows_ = 1, columns_ = 0, tile_rows_ = 1, tile_columns_ = 1;
  int parts_ = 1;
  std::int64_t tile_bytes_ = 0, part_bytes_ = 0;
  std::unique_ptr<char[]> memory_;
  char* tiles_ = nullptr;  ///< in memory_, aligned; of the first part
  std::vector<char*> inputs_, outputs_;
  std::vector<Pool> pools_;
  std::vector<OutputPlace> output_places_;  ///< by output
  std::vector<int> chosen_;                 ///< by output, of choose_inputs
  std::vector<std::uint8_t> is_chosen_;     ///< by input: chosen, or it refused
};

/// The first input that will do; outputs that update one have chosen it before.
template <class Gives>
int TileProgram::choose_input(std::size_t k, const Gives& gives) {
  const OutputPlace& place = output_places_[k];
  const auto is_free = [&](std::uint32_t i) { return !is_chosen_[i] && gives(i, k); };
  const auto found = std::find_if(place.others.begin(), place.others.end(), is_free);
  int result = found == place.others.end() ? -1 : static_cast<int>(*found);
  if (place.pool >= 0) {
    Pool& pool = pools_[static_cast<std::size_t>(place.pool)];
    for (;;) {
      const std::size_t at = pool.last_reads.find(place.made_by);
      if (at == pool.inputs.size()) break;
      const std::uint32_t i = pool.inputs[at];
      if (result >= 0 && result < static_cast<int>(i)) break;
      pool.last_reads.leave_out(at);  // whatever refuses it refuses it for all of one type
      if (!is_free(i)) continue;
      result = static_cast<int>(i);
      break;
    }
  }
  if (result >= 0) is_chosen_[static_cast<std::size_t>(result)] = 1;
  return result;
}

template <class Wanted, class Gives>
const std::vector<int>& TileProgram::choose_inputs(const Wanted& is_wanted, const Gives& gives) {
  for (Pool& pool : pools_) pool.last_reads.begin();
  chosen_.assign(output_places_.size(), -1);
  is_chosen_.assign(inputs_.size(), 0);
  for (std::size_t k = 0; k < output_places_.size(); ++k) {
    const int updated = output_places_[k].updated;
    const auto i = static_cast<std::size_t>(updated);
    if (updated < 0 || is_chosen_[i] || !is_wanted(k)) continue;
    if (gives(i, k)) chosen_[k] = updated;
    is_chosen_[i] = 1;  // what refuses one output refuses all of its type
  }
  for (std::size_t k = 0; k < output_places_.size(); ++k)
    if (chosen_[k] < 0 && is_wanted(k)) chosen_[k] = choose_input(k, gives);
  return chosen_;
}

}  // namespace reel
