// trace/executors/dataflow/lowered.h — LoweredGraph, a graph with its loops and conds lowered to
// nodes that pass tokens: Enter, Merge, Switch, LoopCond, NextIteration and Exit.
//
// TensorFlow's form of control flow (Yu et al., Dynamic Control Flow in Large-Scale Machine
// Learning, EuroSys 2018; Arvind & Nikhil's tagged tokens before it).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/graph/graph.h"
#include "reel/core/graph/graph_rewriter.h"

namespace reel {

enum class LoweredKind : std::uint8_t {
  op,         ///< computes, by its LoweredRole
  enter,      ///< from a frame into iteration 0 of an inner one, or into all if constant
  merge,      ///< passes on the first live input; dead if all inputs are
  switch_,    ///< (x, pred): x leaves by port 1 if pred is true, else by port 0; the other port is
              ///< dead
  loop_cond,  ///< the predicate of a frame; values leave the frame by port 0 of its Switches
  next_iteration,  ///< from an iteration into the next one
  exit,            ///< from the last iteration into the frame around
};

/// The computation of a node of kind op. All roles but the first three belong to loops and conds,
/// and read or make handles: tokens that stand for an object that is no tensor.
enum class LoweredRole : std::uint8_t {
  record,         ///< an op on its inputs
  input,          ///< an input of the graph
  identity,       ///< passes on its input; begins or ends a body, a condition or a branch
  begin,          ///< of a loop, once: (bound, lengths, chunk, slices...) -> handle, 0, empty token
  types,          ///< of a loop, once: (all its inputs) -> handle with their types
  bindings,       ///< of a cond, once: () -> handle with the dims of its branches' symbols
  open,           ///< (handle): binds the free symbols of a graph
  in_bound,       ///< (begin, k) -> true if iteration k may run
  every_entry,    ///< (begin) -> mask in which all entries run
  no_steps,       ///< (begin) -> zero iterations for each entry
  running,        ///< (begin, k[, active]) -> mask of entries that run in iteration k
  any_running,    ///< (begin, k, running) -> true if iteration k runs
  both,           ///< (mask, mask) -> their logical and
  finished,       ///< (begin, finished, running) -> handle with this iteration's finished entries
  seen,           ///< (x, finished) -> input `index` of the body, with finished entries filled
  next,           ///< (made, before, finished) -> carry `index` after the iteration
  term,           ///< (made, finished) -> output `index` of the body, for a stack or sum
  count_running,  ///< (steps, running) -> iterations that each entry ran, including this one
  position,       ///< (begin, k) -> the position that the body reads
  slice,          ///< (begin, k) -> element of slice `index` in iteration k
  put,            ///< (begin, k, stack, term) -> stack `index` with one more term
  add_term,       ///< (sum, term) -> sum `index` with one more term
  increment,      ///< (k) -> k + 1
  made_dim,       ///< (begin, trips[, steps]) -> token of the dim that the loop makes
  stack,          ///< (begin, types, trips, stack[, dim]) -> the loop's stack `index`
  sum,            ///< (begin, types, sum) -> the loop's sum `index`
  trips,          ///< (trips) -> trip count, as the loop returns it
};

/// An output of a node.
struct LoweredPort {
  int node = -1, port = 0;
  auto operator<=>(const LoweredPort&) const = default;
};

/// Type and meaning of a node's output.
struct LoweredOutput {
  std::optional<TensorType> type;  ///< nullopt: a handle
  ValueId value = kNoValue;        ///< in the graph of the node's scope
  bool binds = false;              ///< its type binds dims that other nodes wait for
  bool has_known_dims = false;     ///< its dims may be known already (with_known_dims)
};

struct LoweredNode {
  LoweredKind kind = LoweredKind::op;
  LoweredRole role = LoweredRole::record;
  std::string name;              ///< unique in the graph: while/Merge_1
  int frame = 0;                 ///< in which it runs
  int scope = 0;                 ///< with the values that it makes
  int enters = -1;               ///< of an Enter: the frame
  int index = -1;                ///< of the loop's carry, slice, stack, ...
  bool is_constant = false;      ///< of an Enter: into all iterations
  const Op* op = nullptr;        ///< of a record
  AttrsRef attrs;                ///< of the record, the loop or the cond; may be null
  const Graph* graph = nullptr;  ///< the record's graph, owned by a scope
  int record = -1;               ///< its index there; -1 for inputs
  std::vector<LoweredPort> inputs;
  std::vector<int> controls;  ///< nodes that must run before; if one is dead, this node is
  std::vector<LoweredOutput> outputs;
};

/// A set of nodes with iterations of its own: a loop. Frame 0 is the graph around all loops.
struct LoweredFrame {
  std::string name;   ///< unique: while, while_1
  std::string title;  ///< as in messages: while_loop "while"
  int parent = -1;
  int parallel_iterations = 1;  ///< most iterations in flight at once
  AttrsRef attrs;               ///< LoopAttrs; null for frame 0
  SourceId source = kNoSource;  ///< of the loop
};

/// A graph lowered to nodes: the whole graph, a body, a condition or a branch.
struct LoweredScope {
  GraphRef graph;
  int parent = -1;  ///< the scope of the loop or cond
  int frame = 0;
  /// The iteration that errors name. 0: the iteration in which the scope runs; 1: the next one;
  /// nullopt: the iteration that the parent scope names.
  std::optional<int> ahead;
  std::string first_of = {};  ///< of a condition evaluated before the loop: the loop's title
};

/// A lowered graph. Nodes are in the order of the program, except for those that only bind dims. An
/// input stands behind its reader in one case only: a NextIteration that a Merge reads.
struct LoweredGraph {
  std::vector<LoweredFrame> frames;
  std::vector<LoweredScope> scopes;
  std::vector<LoweredNode> nodes;
  std::vector<LoweredPort> inputs;   ///< of the graph, by place; node -1 if unread
  std::vector<LoweredPort> outputs;  ///< of the graph
};

/// Lowers loops and conds of a graph, nested ones too. Drops nodes that no output depends on,
/// including effects (print), but not checks of values. Collectives stay, and each waits for the
/// one before it in the program.
///
/// Conds with collectives stay one node, and so do some loops:
/// - loops with collectives, as these run in the order of the program;
/// - loops under a memory policy (checkpoints, spilling), as their iterations must be stored in
///   order;
/// - loops that read recomputed residuals;
/// - chunked loops, and loops over a chunk;
/// - reverse loops with a condition.
LoweredGraph lower(const GraphRef& graph);

/// Throws ArgumentError if the nodes cannot run:
/// - a node has an input from another frame or from a port that does not exist;
/// - a node has a number of inputs or outputs that its kind does not allow;
/// - a frame has two LoopCond, or parallel_iterations below 1;
/// - an Enter enters a frame that is not directly inside its own.
void verify(const LoweredGraph& graph);

/// Prints one line per node, by frame.
std::ostream& operator<<(std::ostream& out, const LoweredGraph& graph);
/// Returns Enter, Merge, Switch, ...; for a role its enumerator.
const char* name_of(LoweredKind kind);
const char* name_of(LoweredRole role);

}  // namespace reel
