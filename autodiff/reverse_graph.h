// autodiff/reverse_graph.h — reversing a graph: from inputs to outputs becomes from cotangents to
// cotangents.
#pragma once

#include <vector>

#include "reel/core/checkpoint_policy.h"
#include "reel/core/graph.h"

namespace reel {

/// What to reverse, and what the reversed graph may take from where.
struct ReversalSpec {
  std::vector<std::uint8_t> has_cotangent;  ///< by output of the graph: one will be given
  std::vector<std::uint8_t> is_wanted;      ///< by input: its cotangent is wanted
  std::vector<std::uint8_t>
      is_free;  ///< by input: it can be had again at no cost (a capture, a slice)
  /// By input: the same in every run, so that what is made of such alone is computed once for all
  /// of them; empty for none.
  std::vector<std::uint8_t> is_constant = {};
  std::vector<int> kept_anyway;  ///< outputs of the graph that somebody stores already
  std::vector<std::uint8_t>
      is_varying;           ///< by input: its dims may be others in every run; empty for none
  bool is_enclosed = true;  ///< a body or branch: dims of its inputs are known around it
  bool assumes_cotangents = false;  ///< which of them will be given, nobody knows yet
  bool recomputes_all = false;      ///< save nothing: take inputs, and compute the rest again
  std::vector<std::uint8_t> takes_rows =
      {};  ///< by input: its cotangent may be rows (Vjp::takes_rows); empty for none
  const SavingRule* keeps = nullptr;  ///< what is to be saved; null: what is not element-wise
};

/// A value of the forward graph that must be kept for the reverse one.
struct Saved {
  ValueId value = 0;  ///< of ReversedGraph::forward; for a dim, a token of it
  TensorType type;
  bool spills = false;  ///< SavingRule asks for that
  bool is_local =
      false;  ///< its type mentions dims that are the graph's own: it may change from run to run
};

/// The reversed graph. Its inputs are, in this order, what the lists below say.
struct ReversedGraph {
  Ref<Graph> graph;
  Ref<Graph> forward;           ///< the given graph, with whatever else `saved` needs computed
  std::vector<int> cotangents;  ///< which outputs' cotangents
  std::vector<int> inputs;      ///< which (free) inputs of the forward graph
  std::vector<int> kept;        ///< which outputs of the forward graph
  std::vector<Saved> saved;
  Tensors captured;         ///< constants that a vjp took from outside
  std::vector<int> wanted;  ///< what its outputs are cotangents of: all wanted inputs that are not
                            ///< free, and free ones that a cotangent reaches
  /// For each of those, the output that is 1 (i32) where there is a path to it, if only a run
  /// tells; else -1.
  std::vector<int> presences;
  /// For each of those, the output that has the row numbers, if the cotangent is rows; else -1.
  std::vector<int> row_numbers;
};

/// Saved is only what the reversed graph reads and cannot have more cheaply: not inputs that are
/// free, not what is kept anyway, not what is element-wise from those or the same in every run (it
/// is computed again), never a tensor of which only the dims are read.
ReversedGraph reverse_graph(const Graph& forward, const ReversalSpec& spec);

/// ReversalSpec::assumes_cotangents of the graph whose records' vjps are called on this thread.
bool cotangents_are_assumed();

}  // namespace reel
