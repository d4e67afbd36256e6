// trace/result_slices.h — ResultSlices, which dims of a trace's results are slices of dims outside.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reel/core/dims/dim_changes.h"
#include "reel/core/dims/dim_env.h"
#include "reel/core/dims/slice_key.h"
#include "reel/core/graph/graph.h"

namespace reel {

/// Slices among the dims of a trace's results. A slice that a trace made is a symbol, and each run
/// makes a Dim for it. This class enters that Dim in the table of slices, as the symbol is entered.
/// Whole dims then select their axes in results of a call, as in results of eager code.
class ResultSlices {
 public:
  ResultSlices() = default;
  /// graph: as recorded. captured: the values of its captures. symbols: the dims that stand for the
  /// dims of the arguments.
  ResultSlices(const Graph& graph, const Tensors& captured, const Dims& symbols);
  /// Makes dims of a call's outputs slices, or replaces them by the same slices of equal calls.
  /// arguments: the dims of the call's arguments. Never fails: if memory runs out, or the call is
  /// cancelled, the dims stay dims of their own.
  void note(Tensors& outputs, const Dims& arguments) const noexcept;

 private:
  /// An axis of an output; the operands lead to an operand of a computed dim.
  struct Place {
    std::size_t output, axis;
    std::vector<std::size_t> operands;
  };
  /// The whole dim is a dim of the arguments, of the outputs, or from outside.
  struct Slice {
    Place place;
    std::optional<std::size_t> argument;
    std::optional<Place> output;
    Dim outside;
    SliceKey key;  ///< with dims of the trace; empty if the slice is not found again
  };
  static std::optional<Dim> dim_at(const Tensors& outputs, const Place& place);
  std::optional<Dim> whole_of(const Slice& slice, const Tensors& outputs,
                              const Dims& arguments) const;

  DimChanges find_or_note(const Tensors& outputs, const Dims& arguments) const;

  std::vector<Slice> slices_;
  /// The dims that keys name: those of the arguments and of the outputs, and from outside.
  Dims symbols_, made_;
  std::vector<Place> places_;  ///< of made_
  DimEnv captured_ = DimEnv::renaming();
};

}  // namespace reel
