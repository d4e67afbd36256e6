// trace/trace_symbols.h — TraceSymbols, the dims that stand for those of arguments in a trace.
#pragma once

#include "reel/core/graph/graph_builder.h"
#include "reel/core/types/leaf.h"
#include "reel/trace/dynamic_sizes.h"
#include "reel/trace/signature.h"

namespace reel {

/// Makes a symbol for each named dim of a call's arguments. The recorded function sees symbols, so
/// that its graph serves calls with other dims. A computed dim is computed from the symbols of its
/// operands, and a slice of a dim is a slice of the dim's symbol.
class TraceSymbols {
 public:
  /// table: of the arguments; must outlive the symbols.
  TraceSymbols(DimTable& table, const DynamicSizes& dynamic);

  /// Returns the symbols in the order of the table.
  const Dims& all() const { return symbols_; }
  /// Returns the symbol of a named dim; a plain dim stays.
  Dim operator[](const Dim& dim) const;
  /// Returns the arguments with symbols for dims, and with new inputs of the graph for tensors. The
  /// dims are inputs too, in front.
  TreeLeaves add_inputs(GraphBuilder& builder, const TreeLeaves& arguments,
                        const DynamicSizes& dynamic) const;

 private:
  Dim made_symbol(const Dim& dim, const DynamicSizes& dynamic) const;
  void note_slices() const;
  SliceKey known_key(const Dim& slice, const Dim& whole) const;

  DimTable& table_;
  Dims symbols_;
};

}  // namespace reel
