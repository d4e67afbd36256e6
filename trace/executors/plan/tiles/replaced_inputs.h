// trace/executors/plan/tiles/replaced_inputs.h — TileProgram::ReplacedInputs: finds the inputs that
// outputs of a tile program may overwrite.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/executors/plan/tiles/tile_program.h"
#include "reel/trace/executors/plan/tiles/tile_steps.h"

namespace reel {

/// Finds which outputs may replace which inputs. Usually an output is one cell and an input
/// another, and any input that is read last before the output is made will do. Pools are searched
/// by last read, so that thousands of outputs need no list of thousands of inputs each.
class TileProgram::ReplacedInputs {
 public:
  /// types: of the body's values.
  /// space: sizes of a cell.
  /// cells: with the steps that make and read them.
  /// cells_of_input: by input, the cells that lie in it.
  ReplacedInputs(const Graph& body, const PlannedTypes& types,
                 const std::vector<std::int64_t>& space, const std::vector<TileCell>& cells,
                 const std::vector<std::vector<int>>& cells_of_input);

  /// Sets the program's pools and the places of its outputs.
  void find(TileProgram& to) const;

 private:
  /// Values of one type that are one whole cell with equal strides.
  struct PoolKey {
    const TypeNode* type;
    std::vector<std::int64_t> steps;  ///< 0 along axes of one element
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const TileCell& cell(int c) const { return cells_[at(c)]; }
  int updated_input(ValueId v) const;
  int pool_of(ValueId v, const std::vector<int>& cells, std::vector<PoolKey>& pools) const;
  bool may_replace(std::size_t k, const std::vector<int>& written, std::size_t i) const;
  bool same_steps(const Steps& a, const Steps& b) const;

  const Graph& body_;
  const PlannedTypes& types_;
  const std::vector<std::int64_t>& space_;
  const std::vector<TileCell>& cells_;
  const std::vector<std::vector<int>>& cells_of_input_;
  std::vector<int> input_of_;       ///< by value
  std::vector<std::size_t> maker_;  ///< by value that is no input: its record
};

}  // namespace reel
