// trace/executors/plan/tiles/tile_program.h — TileProgram: a fused op prepared for inputs of
// certain sizes.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/ops/kernels/pointwise_table.h"
#include "reel/core/ops/kernels/reduction_table.h"
#include "reel/core/types/tensor.h"
#include "reel/trace/executors/plan/base/first_below.h"
#include "reel/trace/executors/plan/tiles/placed_chain.h"
#include "reel/trace/executors/plan/tiles/tile_steps.h"

namespace reel {

/// Runs the ops of a fused op one after the other for a tile. A tile has about a thousand elements,
/// or some whole rows if there are sums over rows. Intermediate values stay in the cache; a chain
/// of simple ops keeps them in registers. The bits equal the bits of the separate ops.
///
/// Tiles run over the elements of the smallest values (the space). Operands of a concat and results
/// of a split have that size; larger values are computed in parts of it. Split, concat and spread
/// only determine where elements lie. With sums over rows, a tile has whole rows, and steps on the
/// sums work on one number per row. A linear recurrence takes tiles in the order of its walk over
/// time, and keeps the states of one tile between them. Large programs run as shards on several
/// threads. The shards depend on sizes only, and bits do not depend on them.
class TileProgram {
 public:
  /// body: from FusedAttrs. env: the dims that its free symbols stand for.
  TileProgram(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env);

  /// Runs the ops. Not thread-safe: one run at a time.
  ///
  /// in, out: of the op. An undefined output is allocated with its type, or made in place of an
  /// input. That input is a temporary without other references, and is read last by the step that
  /// writes the output.
  /// updates: every output is undefined and replaces the input that it updates. Requires
  /// may_update() for these inputs.
  void run(OpInputs in, std::span<const TensorType> types, std::span<Tensor> out,
           bool updates = false);

  /// Returns the call that run() is for defined outputs; nothing if it is more than one call, or
  /// none. in, out: must stay where they are; a run reads their blocks.
  std::optional<PlacedChain> placed_chain(OpInputs in, std::span<const Tensor> out) const;

  /// Where an input or output lies in a series of runs.
  struct Strided {
    char* at;               ///< in the first run
    std::int64_t step;      ///< bytes from one run to the next
    char* other = nullptr;  ///< in every second run, for a value between two buffers; or null
  };
  /// Runs the ops `count` times in order, without other work between the runs. A run may read the
  /// outputs of the one before. Not thread-safe.
  ///
  /// in, out: where runs read and write. Requires that an output lies in no input of the same run,
  /// except that it may be an input of its type if is_one_chain(), or if only element-wise ops
  /// read that input, and the last of them makes the output.
  void run_series(std::int64_t count, std::span<Strided> in, std::span<Strided> out);
  /// An input that a run of a series reads from an output of the run before.
  struct Carried {
    std::size_t input, output;
  };
  /// Declares all such inputs, before the first series. If each tile reads them where it wrote
  /// them, tiles do not depend on each other: threads take shares of them through a series.
  void set_carried(std::span<const Carried> carried);
  /// Returns the number of shares in which threads run a series of `count` runs; 1 if its tiles
  /// depend on each other, or if it is too short.
  int shares_of_series(std::int64_t count) const;
  /// Returns true if all ops are one chain. A series calls the chain's code once for all runs then,
  /// or once for each thousand elements.
  bool is_one_chain() const;
  /// Returns true if both programs run the same steps on values of the same sizes, so that one can
  /// run in place of the other. Requires that neither has run yet.
  bool is_same(const TileProgram& other) const;
  std::int64_t held_bytes() const {
    return static_cast<std::int64_t>(steps_.size() * sizeof(Step)) +
           (memory_ ? shards_with_memory_ * shard_bytes_ : 0);
  }
  /// Chooses the inputs that outputs of a run replace. Returns, by output, the input or -1. No
  /// input is chosen twice.
  ///
  /// is_wanted(k): output k must be made. gives(i, k): the tensor of input i may become output k,
  /// as far as the caller knows.
  template <class Wanted, class Gives>
  const std::vector<int>& choose_inputs(const Wanted& is_wanted, const Gives& gives);
  /// Returns true if every output updates an input of its own, as in the step of an optimiser, and
  /// may replace it. choose_inputs() chooses these inputs then, but takes longer.
  template <class Gives>
  bool may_update(const Gives& gives) const {
    std::size_t k = 0;
    while (k < updated_.size() && gives(static_cast<std::size_t>(updated_[k]), k)) ++k;
    return k && k == updated_.size();
  }

 private:
  class Builder;
  class ReplacedInputs;

  enum class Location : std::uint8_t { input, output, tile };
  /// Where an operand or result of a step lies, relative to the current elements.
  struct Place {
    Location location = Location::tile;
    bool repeats = false;     ///< along columns: one element for all
    std::uint32_t index = 0;  ///< number of the input or output
    std::int64_t offset = 0;  ///< bytes; of a tile, from the first one
    std::int64_t row = 0;   ///< elements from one row to the next; a tile that does not repeat has
                            ///< its columns instead
    std::int64_t item = 0;  ///< bytes of an element
    std::vector<std::int64_t> outer;  ///< strides in elements, by outer axis

    bool operator==(const Place&) const = default;
  };
  enum class Kind : std::uint8_t {
    flat_unary,   ///< all operands are contiguous within a tile, and none repeats
    flat_binary,  ///< the same
    unary,
    rows,
    copy,
    sum,    ///< over each row
    chain,  ///< simple steps, as machine code
    walk,   ///< a step of a recurrence
  };
  struct Step {
    Kind kind;
    UnaryLoop unary = nullptr;
    FlatLoop flat = nullptr;
    RowsLoop rows = nullptr;
    ReductionLoop sum = nullptr;
    bool is_of_rows = false;  ///< on one number per row; rows take the place of columns
    int operands = 0;
    Place in[kMaxOperands], out;
    // Chains only:
    std::shared_ptr<const PointwiseCode> code;
    std::vector<Place> places;  ///< operands, then results
    bool is_flat = false;       ///< all are contiguous within a tile, and none repeats
    // Recurrences only, which have is_flat too:
    TileWalk walk = TileWalk::none;
    bool is_double = false;
    std::int64_t state = 0;  ///< bytes from the first tile to the states between tiles

    bool operator==(const Step&) const = default;
  };
  /// A tile: indices of outer axes, then a rectangle of rows and columns.
  struct Tile {
    std::int64_t outer_index[kMaxBroadcastAxes] = {};
    std::int64_t row = 0, column = 0, rows = 0, columns = 0;
    char* tiles = nullptr;          ///< memory of its shard
    char* const* inputs = nullptr;  ///< of the program, by number
    char* const* outputs = nullptr;
    bool is_first = true;  ///< of its walk
  };
  /// The axis of recurrences, along which tiles run in order.
  struct Walk {
    static constexpr int kNone = -2, kRows = -1;
    int axis = kNone;  ///< kRows, or the number of an outer axis; kNone too if it has one element
    bool is_reverse = false;

    bool operator==(const Walk&) const = default;
  };

  /// Inputs that outputs of the same type may replace if the inputs are read last before these
  /// outputs are made.
  struct Pool {
    std::vector<std::uint32_t> inputs;  ///< in increasing order
    FirstBelow last_reads;              ///< by input in `inputs`

    bool operator==(const Pool&) const = default;
  };
  /// The inputs that an output may replace.
  struct OutputPlace {
    int pool = -1;                           ///< -1: none
    int made_by = 0;                         ///< the step that makes the output, if it has a pool
    int updated = -1;                        ///< the input that is tried before all others, or -1
    std::vector<std::uint32_t> others = {};  ///< inputs of no pool; without a pool, all inputs

    bool operator==(const OutputPlace&) const = default;
  };

  template <class Gives>
  int choose_input(std::size_t k, const Gives& gives);
  void run_tiles();
  bool is_chain_on_tile() const;
  void run_chain_on_tile(OpInputs in, std::span<const TensorType> types, std::span<Tensor> out,
                         bool updates);
  void run_chain_series(std::int64_t count, std::span<const Strided> in,
                        std::span<const Strided> out) const;
  void run_tiles_apart(std::int64_t count, std::span<const Strided> in,
                       std::span<const Strided> out) const;
  bool is_written_where_read(const Carried& carried) const;
  void make_memory(int shards);
  void make_outputs(OpInputs in, std::span<const TensorType> types, std::span<Tensor> out,
                    bool updates);
  std::int64_t row_tiles() const { return (rows_ + tile_rows_ - 1) / tile_rows_; }
  std::int64_t column_tiles() const { return (columns_ + tile_columns_ - 1) / tile_columns_; }
  std::int64_t tiles_in_all() const;
  void run_shard(int shard) const;
  std::int64_t tiles_of_walk() const;
  void run_walks(int shard) const;
  void run_walk_step(const Step& step, const Tile& tile) const;
  void begin_states(const Step& step, const Tile& tile, char* states) const;
  void run_lag(const Step& step, const Tile& tile) const;
  Tile tile_of_shard(int shard) const;
  Tile tile_at(std::int64_t number, int shard) const;
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
  Walk walk_;
  std::int64_t rows_ = 1, columns_ = 0, tile_rows_ = 1, tile_columns_ = 1;
  int shards_ = 1;
  std::int64_t work_ = 0;   ///< of a run, for shards_for()
  bool are_apart_ = false;  ///< tiles of a series do not depend on each other
  int shards_with_memory_ = 1;
  std::int64_t tile_bytes_ = 0, shard_bytes_ = 0;
  std::unique_ptr<char[]> memory_;
  char* tiles_ = nullptr;  ///< in memory_, aligned; of the first shard
  std::vector<char*> inputs_, outputs_;
  std::vector<Pool> pools_;
  std::vector<OutputPlace> output_places_;  ///< by output
  std::vector<int> updated_;  ///< OutputPlace::updated; empty unless each output has its own
  std::vector<int> chosen_;   ///< by output; the result of choose_inputs()
  std::vector<std::uint8_t> is_chosen_;  ///< by input: chosen, or refused by gives
};

/// Returns the first suitable input. Outputs that update an input choose before all others.
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
      pool.last_reads.leave_out(at);  // a refusal holds for all outputs of one type
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
    is_chosen_[i] = 1;  // whether gives() refuses depends on the type alone
  }
  for (std::size_t k = 0; k < output_places_.size(); ++k)
    if (chosen_[k] < 0 && is_wanted(k)) chosen_[k] = choose_input(k, gives);
  return chosen_;
}

}  // namespace reel
