// Making a tile program: determines the tiles, and where the operands of its steps lie.
#include "reel/trace/executors/plan/tiles/tile_program.h"

#include <algorithm>

#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/trace/executors/plan/tiles/replaced_inputs.h"
#include "reel/trace/executors/plan/tiles/tile_body.h"
#include "reel/trace/executors/plan/tiles/tile_chains.h"
#include "reel/trace/executors/plan/tiles/tile_steps.h"

namespace reel {
namespace {

/// This many elements stay in the first-level cache for a program of usual length.
constexpr std::int64_t kTile = 1024;

}  // namespace

/// Determines where the operands of a body's steps lie.
class TileProgram::Builder : TileBody {
 public:
  Builder(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env)
      : TileBody(body, inputs, env) {}

  void build(TileProgram& to) {
    if (space_->numel == 0) return find_replaced_inputs(to);
    merge_axes(to);
    const auto ops = static_cast<std::int64_t>(steps_.size());
    steps_ = with_chains(std::move(steps_), cells_,
                         [&](int c, bool on_rows) { return repeats(c, on_rows, to); });
    // Ops of a chain keep their values in registers.
    const auto alone =
        std::ranges::count_if(steps_, [](const TileStep& step) { return !step.code; });
    work_ = alone + (ops - alone) / 2;
    note_reads();
    const int tiles = assign_tiles();
    std::int64_t item = 1;
    for (const TileCell& cell : cells_) item = std::max(item, cell.item);
    to.tile_bytes_ = to.tile_rows_ * to.tile_columns_ * item;
    to.tile_bytes_ = (to.tile_bytes_ + 63) / 64 * 64;
    states_at_ = tiles * to.tile_bytes_;
    to.shard_bytes_ = states_at_ + walks_ * to.tile_bytes_;
    to.work_ = space_->numel * work_;
    to.shards_ = shards_for(to.work_, to.tiles_in_all() / to.tiles_of_walk());
    to.make_memory(to.shards_);
    to.is_one_tile_ =
        to.outer_.empty() && to.rows_ == to.tile_rows_ && to.columns_ == to.tile_columns_;
    for (const TileStep& raw : steps_) to.steps_.push_back(step(raw, to));
    find_replaced_inputs(to);
  }

 private:
  void find_replaced_inputs(TileProgram& to) const {
    ReplacedInputs(body_, types_, space_->sizes, cells_, cells_of_input_).find(to);
  }

  // ---- Axes ---------------------------------------------------------------------------------

  /// Merges adjacent axes that are contiguous in all cells. The two innermost groups then are rows
  /// and columns. If there are sums, the columns are the last axis.
  void merge_axes(TileProgram& to) {
    const int rank = static_cast<int>(space_->sizes.size());
    std::vector<std::vector<int>> merged;  // from the innermost
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t size = space_->sizes[static_cast<std::size_t>(axis)];
      if (size == 1) continue;
      const bool is_apart =
          axis == walk_axis_ || (!merged.empty() && merged.back().front() == walk_axis_);
      if (!merged.empty() && !is_apart && !(has_sums_ && merged.size() == 1)) {
        std::int64_t inner_size = 1;
        for (const int a : merged.back()) inner_size *= space_->sizes[static_cast<std::size_t>(a)];
        const auto inner = static_cast<std::size_t>(merged.back().front());
        if (std::all_of(cells_.begin(), cells_.end(), [&](const TileCell& cell) {
              return (cell.input < 0 && cell.output < 0) ||
                     cell.lie.steps[static_cast<std::size_t>(axis)] ==
                         cell.lie.steps[inner] * inner_size;
            })) {
          merged.back().push_back(axis);
          continue;
        }
      }
      merged.push_back({axis});
    }
    // Columns must be contiguous or repeat.
    const bool has_gaps =
        !merged.empty() && std::any_of(cells_.begin(), cells_.end(), [&](const TileCell& cell) {
          return (cell.input >= 0 || cell.output >= 0) &&
                 cell.lie.steps[static_cast<std::size_t>(merged[0].front())] > 1;
        });
    const auto walks_along = [&](const std::vector<int>& group) {
      return !group.empty() && group.front() == walk_axis_;
    };
    if (has_gaps || (!merged.empty() && walks_along(merged[0])))
      merged.insert(merged.begin(), std::vector<int>());
    const auto size_of_group = [&](std::size_t group) {
      std::int64_t size = 1;
      for (const int axis : merged[group]) size *= space_->sizes[static_cast<std::size_t>(axis)];
      return size;
    };
    to.columns_ = merged.empty() ? 1 : size_of_group(0);
    if (merged.size() > 1) to.rows_ = size_of_group(1);
    for (std::size_t group = merged.size(); group-- > 2;) to.outer_.push_back(size_of_group(group));
    for (const std::vector<int>& group : merged)
      axes_.push_back(group.empty() ? kNoAxis : group.front());
    to.tile_columns_ = has_sums_ ? to.columns_ : std::min(to.columns_, kTile);
    for (std::size_t group = 1; group < merged.size(); ++group)
      if (walks_along(merged[group]))
        to.walk_ = {group == 1 ? Walk::kRows : static_cast<int>(merged.size() - 1 - group),
                    walks_back_};
    if (to.walk_.axis == Walk::kRows && !has_sums_ && merged.size() == 2)
      to.tile_columns_ = std::min(to.tile_columns_, columns_of_walk(to.columns_));
    to.tile_rows_ = std::clamp<std::int64_t>(
        std::max(kTile / to.tile_columns_, rows_of_tile(to.columns_)), 1, to.rows_);
  }

  /// Returns a quarter of the columns, in whole cache lines: shards are groups of channels if only
  /// channels are independent.
  static std::int64_t columns_of_walk(std::int64_t columns) {
    constexpr std::int64_t kLine = 16, kLeast = 128;
    return std::max((columns / 4 + kLine - 1) / kLine * kLine, kLeast);
  }

  /// Returns enough rows that steps on one number per row do not take most of the time. A step of
  /// this kind on a few rows takes as long as a step on about 200 elements.
  std::int64_t rows_of_tile(std::int64_t columns) const {
    constexpr std::int64_t kOfAStep = 200, kMaxTileRows = 32;
    std::int64_t on_rows = 0, on_elements = 0;
    for (const TileStep& step : steps_) ++(cell(step.out[0]).is_of_rows ? on_rows : on_elements);
    return std::min(kMaxTileRows,
                    2 * on_rows * kOfAStep / (std::max<std::int64_t>(on_elements, 1) * columns));
  }

  // ---- Tiles --------------------------------------------------------------------------------

  void note_reads() {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (const int c : steps_[s].in) cell(c).last_read = static_cast<int>(s);
      for (const int c : steps_[s].out) cell(c).made_by = static_cast<int>(s);
    }
  }

  /// Assigns a tile to each cell outside inputs and outputs; reuses tiles after the last read.
  int assign_tiles() {
    std::vector<int> free;
    int count = 0;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      // An operand of the same layout may be overwritten if its last read is here.
      const TileCell like = cell(steps_[s].out[0]);
      const auto release = [&](bool same_width) {
        for (const int c : steps_[s].in) {
          TileCell& read = cell(c);
          const bool is_same = read.item == like.item && read.is_of_rows == like.is_of_rows;
          if (read.tile < 0 || read.last_read != static_cast<int>(s) || is_same != same_width)
            continue;
          free.push_back(read.tile);
          read.last_read = -2;  // only once
        }
      };
      release(true);
      for (const int c : steps_[s].out) {
        TileCell& made = cell(c);
        if (made.output >= 0) continue;
        if (free.empty()) free.push_back(count++);
        made.tile = free.back();
        free.pop_back();
      }
      for (const int c : steps_[s].out)
        if (cell(c).tile >= 0 && cell(c).last_read < 0) free.push_back(cell(c).tile);
      release(false);
    }
    return count;
  }

  // ---- Steps --------------------------------------------------------------------------------

  /// Returns the stride in elements along a merged group of axes.
  std::int64_t step_along(std::size_t group, const TileCell& cell) const {
    return axes_[group] == kNoAxis ? 1 : cell.lie.steps[static_cast<std::size_t>(axes_[group])];
  }
  /// on_rows: for a step with the rows as its columns.
  bool repeats(int c, bool on_rows, const TileProgram& to) const {
    const TileCell& read = cell(c);
    if (read.input < 0 && read.output < 0) return read.is_of_rows && !on_rows;
    if (axes_.empty()) return false;
    if (!on_rows) return step_along(0, read) == 0;
    // A single row has no stride to the next.
    return to.rows_ > 1 && (axes_.size() == 1 || step_along(1, read) == 0);
  }
  Place place(int c, bool on_rows, const TileProgram& to) const {
    const TileCell& from = cell(c);
    Place place;
    place.item = from.item;
    place.repeats = repeats(c, on_rows, to);
    if (from.tile >= 0) {
      place.offset = from.tile * to.tile_bytes_;
      place.row = 1;
      return place;
    }
    place.location = from.input >= 0 ? Location::input : Location::output;
    place.index = static_cast<std::uint32_t>(from.input >= 0 ? from.input : from.output);
    place.offset = from.lie.offset * from.item;
    if (axes_.size() > 1) place.row = step_along(1, from);
    for (std::size_t group = axes_.size(); group-- > 2;)
      place.outer.push_back(step_along(group, from));
    return place;
  }

  /// Returns true if the place is contiguous: a tile has one row, or rows of full length.
  static bool is_flat(const Place& place, bool on_rows, const TileProgram& to) {
    return !place.repeats && (on_rows || place.location == Location::tile || to.tile_rows_ == 1 ||
                              (place.row == to.columns_ && to.tile_columns_ == to.columns_));
  }

  Step chain_step(const TileStep& raw, bool on_rows, const TileProgram& to) const {
    Step step{};
    step.kind = Kind::chain;
    step.is_of_rows = on_rows;
    step.code = raw.code;
    for (const std::vector<int>* cells : {&raw.in, &raw.out})
      for (const int c : *cells) step.places.push_back(place(c, on_rows, to));
    step.is_flat = std::all_of(step.places.begin(), step.places.end(),
                               [&](const Place& place) { return is_flat(place, on_rows, to); });
    return step;
  }

  Step step(const TileStep& raw, const TileProgram& to) {
    Step step{};
    const bool makes_rows = cell(raw.out[0]).is_of_rows;
    if (raw.code) return chain_step(raw, makes_rows, to);
    step.operands = static_cast<int>(raw.in.size());
    step.is_of_rows = makes_rows && !raw.is_sum;
    for (std::size_t i = 0; i < raw.in.size(); ++i)
      step.in[i] = place(raw.in[i], step.is_of_rows, to);
    step.out = place(raw.out[0], makes_rows, to);
    bool flat = is_flat(step.out, step.is_of_rows, to);
    for (int i = 0; i < step.operands; ++i) flat = flat && is_flat(step.in[i], step.is_of_rows, to);
    if (raw.walk != TileWalk::none) {
      step.kind = Kind::walk;
      step.walk = raw.walk;
      step.is_flat = flat;
      step.is_double = raw.from == f64;
      if (raw.walk != TileWalk::lag) step.state = states_at_ + placed_walks_++ * to.tile_bytes_;
      return step;
    }
    if (raw.is_sum) {
      step.kind = Kind::sum;
      step.sum = reduction_table().sum[column_of(raw.from)];
      return step;
    }
    if (!raw.op) {
      step.kind = Kind::copy;
      return step;
    }
    const PointwiseTable& table = pointwise_table();
    const ElementLoop loop = *element_loop(*raw.op);
    step.kind = flat ? Kind::flat_unary : Kind::unary;
    if (const Unary* op = std::get_if<Unary>(&loop)) {
      step.unary = table.unary[static_cast<int>(*op)][column_of(raw.from)];
    } else if (std::get_if<CastLoop>(&loop)) {
      step.unary = table.cast[column_of(raw.from)][column_of(raw.to)];
    } else {
      const Binary* op = std::get_if<Binary>(&loop);
      step.kind = op && flat ? Kind::flat_binary : Kind::rows;
      if (op) {
        step.rows = table.binary[static_cast<int>(*op)][column_of(raw.from)];
        step.flat = table.flat[static_cast<int>(*op)][column_of(raw.from)];
      } else {
        step.rows = table.where[column_of(raw.to)];
      }
    }
    return step;
  }

  static constexpr int kNoAxis = -1;

  std::int64_t placed_walks_ = 0;  ///< of steps with states between tiles
  std::int64_t states_at_ = 0;     ///< bytes before these states
  std::int64_t work_ = 0;          ///< of each element, for shards_for()
  std::vector<int> axes_;          ///< by merged group, from the innermost: its innermost axis
};

void TileProgram::make_memory(int shards) {
  memory_.reset(new char[static_cast<std::size_t>(shards * shard_bytes_ + 64)]);
  const auto start = reinterpret_cast<std::uintptr_t>(memory_.get());
  tiles_ = memory_.get() + (64 - start % 64);
  shards_with_memory_ = shards;
}

TileProgram::TileProgram(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env)
    : inputs_(body.inputs.size()), outputs_(body.outputs.size()) {
  Builder(body, inputs, env).build(*this);
}

}  // namespace reel
