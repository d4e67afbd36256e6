// Making a tile program: splits a body into steps, and determines where their operands lie.
#include "reel/trace/executors/plan/tiles/tile_program.h"

#include <algorithm>

#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/ops/shape/shape.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/executors/plan/tiles/replaced_inputs.h"
#include "reel/trace/executors/plan/tiles/tile_chains.h"
#include "reel/trace/executors/plan/tiles/tile_steps.h"

namespace reel {
namespace {

/// This many elements stay in the first-level cache for a program of usual length.
constexpr std::int64_t kTile = 1024;

}  // namespace

/// Splits a body into steps on cells.
class TileProgram::Builder {
 public:
  Builder(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env)
      : body_(body), types_(plan_types(body, inputs, env)), cells_of_(body.types.size()) {
    cells_of_input_.resize(body.inputs.size());
    input_of_.assign(body.types.size(), -1);
    for (std::size_t i = 0; i < body.inputs.size(); ++i)
      input_of_[body.inputs[i]] = static_cast<int>(i);
    find_space();
    if (space_->numel == 0) return;
    for (std::size_t r = 0; r < body.records.size(); ++r) add(r);
    for (std::size_t k = 0; k < body.outputs.size(); ++k) write_output(static_cast<int>(k));
    drop_unread();
  }

  void build(TileProgram& to) {
    if (space_->numel == 0) return find_replaced_inputs(to);
    merge_axes(to);
    work_ = static_cast<std::int64_t>(steps_.size());
    steps_ = with_chains(std::move(steps_), cells_,
                         [&](int c, bool on_rows) { return repeats(c, on_rows, to); });
    note_reads();
    const int tiles = assign_tiles();
    std::int64_t item = 1;
    for (const TileCell& cell : cells_) item = std::max(item, cell.item);
    to.tile_bytes_ = to.tile_rows_ * to.tile_columns_ * item;
    to.tile_bytes_ = (to.tile_bytes_ + 63) / 64 * 64;
    states_at_ = tiles * to.tile_bytes_;
    to.shard_bytes_ = states_at_ + walks_ * to.tile_bytes_;
    to.shards_ = shards_for(space_->numel * work_, to.tiles_in_all() / to.tiles_of_walk());
    to.memory_.reset(new char[static_cast<std::size_t>(to.shards_ * to.shard_bytes_ + 64)]);
    const auto start = reinterpret_cast<std::uintptr_t>(to.memory_.get());
    to.tiles_ = to.memory_.get() + (64 - start % 64);
    to.is_one_tile_ =
        to.outer_.empty() && to.rows_ == to.tile_rows_ && to.columns_ == to.tile_columns_;
    for (const TileStep& raw : steps_) to.steps_.push_back(step(raw, to));
    find_replaced_inputs(to);
  }

 private:
  const TypeNode& type(ValueId v) const { return *types_.types[v].node(); }

  /// Finds the size of the cells: the parts of splits and concats, which all have one size; without
  /// these, whole values.
  void find_space() {
    space_ = &type(body_.outputs[0]);
    for (std::size_t r = 0; r < body_.records.size(); ++r) {
      const OpRecord& record = body_.records[r];
      if (record.op == &split_op) {
        const auto& attrs = get<SplitAttrs>(types_.attrs[r].get());
        joined(body_.inputs_of(record)[0], body_.outputs_of(record)[0], attrs.axis, attrs.parts);
      } else if (record.op == &concat_op) {
        const auto in = body_.inputs_of(record);
        joined(body_.outputs_of(record)[0], in[0], get<ConcatAttrs>(types_.attrs[r].get()).axis,
               static_cast<int>(in.size()));
      } else if (record.op == &sum_op) {
        space_ = &type(body_.inputs_of(record)[0]);
        has_sums_ = true;
      } else if (is_linear_scan(record.op)) {
        const auto& attrs = get<LinearScanAttrs>(types_.attrs[r].get());
        space_ = &type(body_.outputs_of(record)[0]);
        walk_axis_ = attrs.axis;
        walks_back_ = attrs.reverse != (record.op == &linear_scan_grad_op);
      }
    }
  }
  void joined(ValueId whole, ValueId part, int axis, int parts) {
    wholes_.emplace_back(&type(whole), parts);
    space_ = &type(part);
    axis_ = axis;
  }
  int parts_of(const TypeNode& value) const {
    for (const auto& [whole, parts] : wholes_)
      if (value.sizes == whole->sizes) return parts;
    return 1;
  }
  bool is_whole(const TypeNode& value) const { return parts_of(value) > 1; }
  /// Returns true for one number per row. The pass fuses no other values that have fewer axes than
  /// the space, or one element in the last axis.
  bool is_of_rows(const TypeNode& value) const {
    return has_sums_ && (value.sizes.size() < space_->sizes.size() ||
                         (!is_whole(value) && value.sizes.back() != space_->sizes.back()));
  }

  int add_cell(TileCell cell) {
    cells_.push_back(std::move(cell));
    const int c = static_cast<int>(cells_.size()) - 1;
    if (cells_.back().input >= 0) cells_of_input_[at(cells_.back().input)].push_back(c);
    return c;
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  TileCell& cell(int c) { return cells_[at(c)]; }
  const TileCell& cell(int c) const { return cells_[at(c)]; }
  static std::int64_t item_of(const TypeNode& type) {
    return static_cast<std::int64_t>(size_of(type.dtype));
  }

  /// Returns where part `part` of a value lies, given its strides along the axes of `type`.
  Lie lie(const TypeNode& type, const Steps& steps, int part) const {
    Lie result{0, steps};
    if (is_of_rows(type)) {  // one number per row, for all columns
      result.steps.resize(space_->sizes.size());
      result.steps.back() = 0;
    }
    if (is_whole(type))
      result.offset = part * space_->sizes[static_cast<std::size_t>(axis_)] *
                      steps[static_cast<std::size_t>(axis_)];
    return result;
  }
  static Steps own_steps(const TypeNode& type) {
    Steps steps(type.sizes.size());
    std::int64_t step = 1;
    for (std::size_t i = type.sizes.size(); i-- > 0; step *= type.sizes[i]) steps[i] = step;
    return steps;
  }

  /// Returns the cell of part `part` of operand v, for a result of type `result`.
  int operand(ValueId v, const TypeNode& result, int part) {
    const std::vector<int>& cells = cells_of_[v];
    if (!cells.empty()) return cells[cells.size() == 1 ? 0 : static_cast<std::size_t>(part)];
    Steps steps;
    for (int axis = 0; axis < static_cast<int>(result.dims.size()); ++axis)
      steps.push_back(broadcast_stride(type(v), result, axis));
    return input_cell(v, lie(result, steps, part));
  }
  /// Returns the cell of an input that lies like this.
  int input_cell(ValueId v, const Lie& lies) {
    for (const int c : cells_of_input_[at(input_of_[v])])
      if (cell(c).lie == lies) return c;
    return add_cell({.input = input_of_[v], .lie = lies, .item = item_of(type(v))});
  }
  /// Returns the steps of a spread's or expand's operand along the axes of the result.
  Steps repeated_steps(std::size_t r) const {
    const OpRecord& record = body_.records[r];
    Steps steps = own_steps(type(body_.inputs_of(record)[0]));
    if (record.op == &spread_op) {
      for (const int axis : get<SpreadAttrs>(types_.attrs[r].get()).axes)
        steps.insert(steps.begin() + axis, 0);
      return steps;
    }
    Steps result;
    for (const int axis : get<ExpandAttrs>(types_.attrs[r].get()).from)
      result.push_back(axis < 0 ? 0 : steps[at(axis)]);
    return result;
  }

  void add(std::size_t r) {
    const OpRecord& record = body_.records[r];
    const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
    const TypeNode& result = type(out[0]);
    if (record.op == &split_op) {
      for (std::size_t i = 0; i < out.size(); ++i)
        cells_of_[out[i]] = {operand(in[0], type(in[0]), static_cast<int>(i))};
      return;
    }
    std::vector<int>& cells = cells_of_[out[0]];
    if (record.op == &concat_op) {
      for (const ValueId v : in) cells.push_back(operand(v, type(v), 0));
      return;
    }
    if (is_linear_scan(record.op)) return add_recurrence(r);
    for (int part = 0; part < parts_of(result); ++part) {
      if (record.op == &spread_op || record.op == &expand_op) {
        // A number per row is the same cell.
        cells.push_back(cells_of_[in[0]].empty()
                            ? input_cell(in[0], lie(result, repeated_steps(r), part))
                            : operand(in[0], type(in[0]), 0));
        continue;
      }
      TileStep step{.op = record.op, .from = type(in[0]).dtype, .to = result.dtype};
      const bool is_sum = record.op == &sum_op;
      for (const ValueId v : in) step.in.push_back(operand(v, is_sum ? type(v) : result, part));
      repeat_one_less(step, is_of_rows(result) && !is_sum);
      cells.push_back(add_cell({.is_of_rows = is_of_rows(result), .item = item_of(result)}));
      step.out = {cells.back()};
      steps_.push_back(std::move(step));
    }
  }

  // ---- Recurrences --------------------------------------------------------------------------

  /// Splits a recurrence into a step that walks and products (linear_scan.h has the formulas).
  void add_recurrence(std::size_t r) {
    const OpRecord& record = body_.records[r];
    const auto& attrs = get<LinearScanAttrs>(types_.attrs[r].get());
    const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
    const int x_at = attrs.operands & kScanX ? 2 : -1;
    if (record.op == &linear_scan_op) {
      const int b = walked(in[1], attrs.over_time & kScanB);
      TileStep step = walk_step(
          TileWalk::states,
          {contiguous(walked(in[0], attrs.over_time & kScanA)),
           x_at < 0 ? contiguous(b) : product(b, walked(in[2], attrs.over_time & kScanX))});
      if (attrs.operands & kScanInitial)
        step.in.push_back(walked(in[static_cast<std::size_t>(x_at < 0 ? 2 : 3)], false));
      cells_of_[out[0]] = {append(std::move(step))};
      return;
    }
    const ScanGradOperands order(attrs);
    const auto factor = [&](int at, ScanOperand which) {
      return walked(in[static_cast<std::size_t>(at)], attrs.over_time & which);
    };
    const int g =
        append(walk_step(TileWalk::cotangents, {contiguous(walked(in[0], attrs.over_time & kScanA)),
                                                contiguous(walked(in[1], true))}));
    std::size_t k = 0;
    if (attrs.wanted & kScanA) {
      TileStep lag =
          walk_step(TileWalk::lag, {walked(in[static_cast<std::size_t>(order.h)], true)});
      if (order.initial >= 0)
        lag.in.push_back(walked(in[static_cast<std::size_t>(order.initial)], false));
      cells_of_[out[k++]] = {product(g, append(std::move(lag)))};
    }
    if (attrs.wanted & kScanB)
      cells_of_[out[k++]] = {order.x < 0 ? g : product(g, factor(order.x, kScanX))};
    if (attrs.wanted & kScanX) cells_of_[out[k++]] = {product(g, factor(order.b, kScanB))};
  }
  TileStep walk_step(TileWalk walk, std::vector<int> in) {
    walks_ += walk != TileWalk::lag;
    return {.walk = walk, .from = space_->dtype, .to = space_->dtype, .in = std::move(in)};
  }
  /// Returns the cell of an operand, which the axis of the walk repeats if the operand lacks it.
  int walked(ValueId v, bool over_time) {
    if (over_time) return operand(v, *space_, 0);
    Steps steps = own_steps(type(v));
    steps.insert(steps.begin() + walk_axis_, 0);
    return input_cell(v, lie(*space_, steps, 0));
  }
  /// Returns a cell with the elements of c that does not repeat along columns.
  int contiguous(int c) {
    if (!cell(c).is_of_rows &&
        (cell(c).input < 0 || !repeats_along_last(cell(c), space_->sizes.size())))
      return c;
    const int copy = add_cell({.item = cell(c).item});
    steps_.push_back({.in = {c}, .out = {copy}});
    return copy;
  }
  int product(int a, int b) {
    TileStep step{.op = &mul_op, .from = space_->dtype, .to = space_->dtype, .in = {a, b}};
    repeat_one_less(step, false);
    return append(std::move(step));
  }
  /// Appends a step. Returns the cell of its result.
  int append(TileStep step) {
    const int made = add_cell({.item = item_of(*space_)});
    step.out = {made};
    steps_.push_back(std::move(step));
    return made;
  }

  /// Returns true if an input's cell is one number along the last of the first `axes` axes that has
  /// more than one element.
  bool repeats_along_last(const TileCell& cell, std::size_t axes) const {
    while (axes-- > 0)
      if (space_->sizes[axes] != 1) return cell.lie.steps[axes] == 0;
    return true;
  }

  /// Loops need an operand that does not repeat. If all repeat, one is written out.
  void repeat_one_less(TileStep& step, bool on_rows) {
    const auto inner = space_->sizes.size() - on_rows;
    for (const int c : step.in) {
      const TileCell& cell = cells_[static_cast<std::size_t>(c)];
      if (cell.is_of_rows && !on_rows) continue;
      if (cell.input < 0 || inner == 0 || space_->numel == 1 || !repeats_along_last(cell, inner))
        return;
    }
    const int copy = add_cell(
        {.is_of_rows = on_rows, .item = cells_[static_cast<std::size_t>(step.in.back())].item});
    steps_.push_back({.in = {step.in.back()}, .out = {copy}});
    step.in.back() = copy;
  }

  void write_output(int k) {
    const ValueId v = body_.outputs[static_cast<std::size_t>(k)];
    const std::vector<int> cells = cells_of_[v];
    for (std::size_t part = 0; part < cells.size(); ++part) {
      const Lie to = lie(type(v), own_steps(type(v)), static_cast<int>(part));
      TileCell& cell = cells_[static_cast<std::size_t>(cells[part])];
      const bool on_rows = is_of_rows(type(v));
      if (cell.input < 0 && cell.output < 0 && cell.is_of_rows == on_rows) {
        cell.output = k;
        cell.lie = to;
        continue;
      }
      const int copy =
          add_cell({.is_of_rows = on_rows, .lie = to, .output = k, .item = item_of(type(v))});
      steps_.push_back({.in = {cells[part]}, .out = {copy}});
    }
  }

  /// Drops steps with unread results, such as unread parts of a split.
  void drop_unread() {
    std::vector<bool> is_read(cells_.size());
    std::vector<TileStep> read;
    for (std::size_t s = steps_.size(); s-- > 0;) {
      const int out = steps_[s].out[0];
      if (cell(out).output < 0 && !is_read[static_cast<std::size_t>(out)]) continue;
      for (const int c : steps_[s].in) is_read[static_cast<std::size_t>(c)] = true;
      read.push_back(std::move(steps_[s]));
    }
    std::reverse(read.begin(), read.end());
    steps_ = std::move(read);
  }

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
    const bool is_sum = raw.op == &sum_op;
    step.is_of_rows = makes_rows && !is_sum;
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
    if (is_sum) {
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

  const Graph& body_;
  PlannedTypes types_;
  std::vector<int> input_of_;                     ///< by value
  std::vector<std::vector<int>> cells_of_;        ///< by value: one, or one per part
  std::vector<std::vector<int>> cells_of_input_;  ///< by input: the cells that lie in it
  const TypeNode* space_ = nullptr;
  bool has_sums_ = false;
  int walk_axis_ = -1;  ///< of recurrences
  bool walks_back_ = false;
  std::int64_t walks_ = 0, placed_walks_ = 0;            ///< steps with states between tiles
  std::int64_t states_at_ = 0;                           ///< bytes before these states
  std::vector<std::pair<const TypeNode*, int>> wholes_;  ///< large types and their parts
  int axis_ = 0;                                         ///< the axis of splits and concats
  std::vector<TileCell> cells_;
  std::vector<TileStep> steps_;
  std::int64_t work_ = 0;  ///< steps on each element, before chains are formed
  std::vector<int> axes_;  ///< by merged group, from the innermost: its innermost axis
};

TileProgram::TileProgram(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env)
    : inputs_(body.inputs.size()), outputs_(body.outputs.size()) {
  Builder(body, inputs, env).build(*this);
}

}  // namespace reel
