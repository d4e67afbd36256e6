// autodiff/reverse_graph.h — reverses a graph: from output cotangents to input cotangents.
#pragma once

#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/options/checkpoint_policy.h"

namespace reel {

/// The parts to reverse, and the values that the reversed graph may use.
struct ReversalSpec {
  std::vector<std::uint8_t> has_cotangent;  ///< by output of the graph: a cotangent will be given
  std::vector<std::uint8_t> is_wanted;      ///< by input: its cotangent is wanted
  std::vector<std::uint8_t>
      is_free;  ///< by input: available in reverse at no cost (a capture, a slice)
  /// By input: equal in every run, so that values computed from such inputs alone are computed once
  /// for all runs; empty for none.
  std::vector<std::uint8_t> is_constant = {};
  std::vector<std::size_t> kept_anyway;  ///< outputs of the graph that are stored anyway
  std::vector<std::uint8_t>
      is_varying;           ///< by input: its dims may change from run to run; empty for none
  bool is_enclosed = true;  ///< a body or branch: the enclosing graph knows the dims of its inputs
  bool assumes_cotangents = false;  ///< it is not yet known which cotangents will be given
  bool recomputes_all = false;      ///< save nothing: take inputs and recompute the rest
  std::vector<std::uint8_t> takes_rows =
      {};  ///< by input: its cotangent may be rows (Vjp::takes_rows); empty for none
  const SavingRule* keeps = nullptr;  ///< selects residuals; null: all not element-wise
};

/// A residual: a value of the forward graph that the reverse graph reads.
struct Residual {
  ValueId value = 0;  ///< of ReversedGraph::forward; for a dim, its token
  TensorType type;
  bool spills = false;    ///< SavingRule asks for a file
  bool is_local = false;  ///< its type mentions dims of the graph: it may change by run
};

/// The reversed graph. Its inputs are those named by the lists below, in this order.
struct ReversedGraph {
  Ref<Graph> graph;
  Ref<Graph> forward;  ///< the given graph, with further records that residuals need
  std::vector<std::size_t> cotangents;  ///< it takes cotangents of these outputs
  std::vector<std::size_t> inputs;      ///< it takes these (free) inputs of the forward graph
  std::vector<std::size_t> kept;        ///< it takes these outputs of the forward graph
  std::vector<Residual> residuals;
  Tensors captured;  ///< constants that a vjp took from outside
  /// Its first outputs are cotangents of these inputs: all wanted ones that are not free, and free
  /// ones with a path. A table that is read whole and by rows occurs twice.
  std::vector<std::size_t> wanted;
  /// By wanted input: the output that is 1 (i32) if a run has a path to it; -1 if that is certain.
  std::vector<int> presences;
  /// By wanted input: the output with the row numbers if the cotangent is rows; otherwise -1.
  std::vector<int> row_numbers;
};

/// Reverses a graph and chooses its residuals: the values that the reversed graph reads and cannot
/// get more cheaply. Free inputs and outputs stored anyway are not saved. Values that are
/// element-wise in these, or equal in every run, are recomputed. A tensor is never saved if
/// only its dims are read.
ReversedGraph reverse_graph(const Graph& forward, const ReversalSpec& spec);

/// Returns ReversalSpec::assumes_cotangents of the reversal in progress on this thread.
bool cotangents_are_assumed();

}  // namespace reel
