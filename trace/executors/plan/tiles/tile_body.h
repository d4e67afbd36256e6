// trace/executors/plan/tiles/tile_body.h — TileBody, the body of a fused op as steps on cells.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/executors/plan/tiles/tile_steps.h"

namespace reel {

/// Splits a body into steps on cells. If the space has no elements, there are no steps.
class TileBody {
 protected:
  TileBody(const Graph& body, std::span<const TensorType> inputs, const DimEnv& env);

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  TileCell& cell(int c) { return cells_[at(c)]; }
  const TileCell& cell(int c) const { return cells_[at(c)]; }

  const Graph& body_;
  PlannedTypes types_;
  std::vector<std::vector<int>> cells_of_input_;  ///< by input: the cells that lie in it
  const TypeNode* space_ = nullptr;               ///< has the size of all cells
  bool has_sums_ = false;
  int walk_axis_ = -1;  ///< of recurrences
  bool walks_back_ = false;
  std::int64_t walks_ = 0;  ///< steps with states between tiles
  std::vector<TileCell> cells_;
  std::vector<TileStep> steps_;

 private:
  const TypeNode& type(ValueId v) const { return *types_.types[v].node(); }
  /// Finds the size of the cells: the parts of splits and concats, which all have one size; without
  /// these, whole values.
  void find_space();
  void joined(ValueId whole, ValueId part, int axis, int parts);
  int parts_of(const TypeNode& value) const;
  bool is_whole(const TypeNode& value) const { return parts_of(value) > 1; }
  /// Returns true for one number per row. The pass fuses no other values that have fewer axes than
  /// the space, or one element in the last axis.
  bool is_of_rows(const TypeNode& value) const;
  int add_cell(TileCell cell);
  static std::int64_t item_of(const TypeNode& type);
  /// Returns where part `part` of a value lies, given its strides along the axes of `type`.
  Lie lie(const TypeNode& type, const Steps& steps, int part) const;
  static Steps own_steps(const TypeNode& type);
  /// Returns the cell of part `part` of operand v, for a result of type `result`.
  int operand(ValueId v, const TypeNode& result, int part);
  /// Returns the cell of an input that lies like this.
  int input_cell(ValueId v, const Lie& lies);
  /// Returns the steps of a spread's or expand's operand along the axes of the result.
  Steps repeated_steps(std::size_t r) const;
  void add(std::size_t r);
  /// Splits a recurrence into a step that walks and products (linear_scan.h has the formulas).
  void add_recurrence(std::size_t r);
  TileStep walk_step(TileWalk walk, std::vector<int> in);
  /// Returns the cell of an operand, which the axis of the walk repeats if the operand lacks it.
  int walked(ValueId v, bool over_time);
  /// Returns a cell with the elements of c that does not repeat along columns.
  int contiguous(int c);
  int product(int a, int b);
  /// Appends a step. Returns the cell of its result.
  int append(TileStep step);
  /// Returns true if an input's cell is one number along the last of the first `axes` axes that has
  /// more than one element.
  bool repeats_along_last(const TileCell& cell, std::size_t axes) const;
  /// Loops need an operand that does not repeat. If all repeat, one is written out.
  void repeat_one_less(TileStep& step, bool on_rows);
  void write_output(int k);
  /// Drops steps with unread results, such as unread parts of a split.
  void drop_unread();

  std::vector<int> input_of_;                            ///< by value
  std::vector<std::vector<int>> cells_of_;               ///< by value: one, or one per part
  std::vector<std::pair<const TypeNode*, int>> wholes_;  ///< large types and their parts
  int axis_ = 0;                                         ///< the axis of splits and concats
};

}  // namespace reel
