// onnx/writers/cell_pattern.h — finds the cells that ONNX's RNN, GRU and LSTM compute, in the body
// of a loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/ops/loop/loop_views.h"

namespace reel::exported {

/// A value of the graph around a loop, or of the loop's body.
struct CellValue {
  bool is_outside = false;
  ValueId value = 0;
  bool operator==(const CellValue&) const = default;
};

/// The elements begin <= i < end of a weight, along its axis of gates.
struct CellWeight {
  CellValue of;
  int axis = 0;
  std::int64_t begin = 0, end = 0;
};

/// The weights of a gate, which applies an activation to x·input + h·recurrent + biases.
struct CellGate {
  CellWeight input, recurrent;     ///< matrices
  std::vector<CellWeight> biases;  ///< vectors that are added
  /// Vectors that are added to h·recurrent before the reset gate multiplies it (GRU).
  std::vector<CellWeight> recurrent_biases;
  std::optional<CellWeight> peephole;  ///< a vector that multiplies the state c (LSTM)
};

/// A cell of ONNX.
struct StandardCell {
  std::string op;                        ///< RNN, GRU or LSTM
  std::vector<CellGate> gates;           ///< in ONNX's order
  std::vector<std::string> activations;  ///< ONNX's names; empty for its defaults
  bool resets_product = false;           ///< GRU: linear_before_reset
  std::size_t h = 0, c = 0;              ///< indices of carries; c for an LSTM only
  ValueId xs = 0;                        ///< outside: [time, ..., in]
  int in = 0;                            ///< the axis of xs that the input weights contract
};

/// Returns the cell that the body computes in each iteration, or nothing if it computes anything
/// else. All carries, stacks and sums belong to the cell: stacks have h.
///
/// The records of the body decide, not the function that the user called. Sums may be in any order,
/// gates may lie in one matrix or in several, and x·input may be computed before the loop.
/// outside: the graph around the loop. values: the loop's operands in it.
std::optional<StandardCell> find_standard_cell(const LoopAttrs& attrs, const Graph& outside,
                                               const LoopOperands<const ValueId>& values);

}  // namespace reel::exported
