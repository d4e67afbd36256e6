// autodiff/dim_sources.h — DimSources, the inputs from which a reversed graph knows its dims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "reel/autodiff/recorded_reversal.h"

namespace reel {

/// Finds an input of the reversed graph for each dim that its records mention. An input determines
/// the dims of its type. If no input does, a free input of the forward graph is taken for its dims
/// alone; otherwise the forward graph saves the dim as a token.
///
/// The arguments of the constructor must outlive it.
class DimSources {
 public:
  DimSources(const Graph& forward, const ReversalSpec& spec, const RecordedReversal& both);

  /// Notes that the reversed graph has a value of this type, which determines its dims.
  void add_value(const TensorType& type);
  /// Takes a forward input.
  void take_input(std::size_t input);
  /// Ensures that a value, a taken input or a token determines the dim.
  void require(const Dim& dim);

  bool takes_input(std::size_t input) const { return takes_input_[input]; }
  /// Returns the dims that the forward graph must save as tokens.
  const Dims& tokens() const { return tokens_; }
  /// Returns true if the type mentions a dim that differs between runs of the graph.
  bool is_local(const TensorType& type) const;

 private:
  using DimSet = std::unordered_set<const DimNode*>;

  void find_own_dims();
  void find_varying_dims(const Graph& forward);
  void find_forward_dims();
  void take_inputs_with(const Dim& dim);
  void require_dims_computed_from(const Dim& dim);
  const TensorType& type_of_input(std::size_t input) const {
    return both_.graph->types[both_.graph->inputs[input]];
  }

  const ReversalSpec& spec_;
  const RecordedReversal& both_;
  DimSet own_;                             ///< dims that the graph makes, or has from its inputs
  DimSet local_;                           ///< of these, the dims that differ between runs
  DimSet forward_;                         ///< dims that values of the forward graph determine
  DimSet bound_;                           ///< dims that values, taken inputs or tokens determine
  std::vector<std::uint8_t> takes_input_;  ///< by input of the forward graph
  Dims tokens_;
};

}  // namespace reel
