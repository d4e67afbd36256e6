// trace/executors/dataflow/lowered.h — LoweredGraph, a graph whose loops and conds are taken apart
// into nodes that pass tokens: Enter, Merge, Switch, LoopCond, NextIteration and Exit.
//
// TensorFlow's form of control flow (Yu et al., Dynamic Control Flow in Large-Scale Machine
// Learning, EuroSys 2018; Arvind & Nikhil's tagged tokens before it).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/graph.h"

namespace reel {

enum class LoweredKind : std::uint8_t {
  op,         ///< computes: what LoweredRole says
  enter,      ///< from a frame into iteration 0 of one inside it, or into all, where constant
  merge,      ///< hands on the first live input; dead where all are
  switch_,    ///< (x, pred): x leaves by port 1 if pred holds, else by port 0; dead by the other
  loop_cond,  ///< the predicate of a frame; by port 0 of its Switches values leave
  next_iteration,  ///< from an iteration into the one behind it
  exit,            ///< from the last iteration into the frame around
};

/// What a node of kind op computes. All but the first three are of loops and conds, and read or
/// make handles: tokens that stand for something that is no tensor.
enum class LoweredRole : std::uint8_t {
  record,       ///< an op on its inputs
  input,        ///< an input of the graph
  identity,     ///< hands on its input; where a body, a condition or a branch begins or ends
  begin,        ///< of a loop, once: (bound, lengths, chunk, slices...) -> handle, 0, nothing
  types,        ///< of a loop, once: (all its inputs) -> handle, their types
  bindings,     ///< of a cond, once: () -> handle, what dims stand for in its branches
  open,         ///< (handle): what dims stand for in a graph, from here on
  in_bound,     ///< (begin, k) -> whether iteration k may run
  every_entry,  ///< (begin) -> a mask over entries that all run
  no_steps,     ///< (begin) -> how many iterations each entry ran: none
  live,         ///< (begin, k[, active]) -> which entries run in iteration k
  any_live,     ///< (begin, k, live) -> whether iteration k runs
  both,         ///< (mask, mask) -> where both hold
  ended,        ///< (begin, ended, live) -> what ended entries see in this iteration
  seen,         ///< (x, ended) -> input `index` of the body, as it sees it
  next,         ///< (made, before, ended) -> carry `index` after the iteration
  term,         ///< (made, ended) -> output `index` of the body, as a stack or sum takes it
  count_live,   ///< (steps, live) -> how many iterations each entry ran, this one counted
  position,     ///< (begin, k) -> the step that the body sees
  slice,        ///< (begin, k) -> slice k of input `index`
  put,          ///< (begin, k, stack, term) -> stack `index` with one more term
  add_term,     ///< (sum, term) -> sum `index` with one more term
  increment,    ///< (k) -> k + 1
  made_dim,     ///< (begin, trips[, steps]) -> a token of the dim that the loop makes
  stack,        ///< (begin, types, trips, stack[, dim]) -> output `index` of the loop's stacks
  sum,          ///< (begin, types, sum) -> output `index` of the loop's sums
  trips,        ///< (trips) -> how many iterations ran, as the loop gives it
};

/// An output of a node.
struct LoweredPort {
  int node = -1, port = 0;
  auto operator<=>(const LoweredPort&) const = default;
};

/// What a node's output is.
struct LoweredOutput {
  static constexpr ValueId kNone = ~ValueId{0};
  std::optional<TensorType> type;  ///< none: a handle
  ValueId value = kNone;           ///< of the graph of the node's scope
  bool binds = false;              ///< others wait for it, to know dims that its type tells
  bool has_known_dims = false;     ///< its dims may be known already (with_known_dims)
};

struct LoweredNode {
  LoweredKind kind = LoweredKind::op;
  LoweredRole role = LoweredRole::record;
  std::string name;              ///< unique in the graph: while/Merge_1
  int frame = 0;                 ///< that it runs in
  int scope = 0;                 ///< whose values it makes
  int enters = -1;               ///< of an Enter: the frame
  int index = -1;                ///< which carry, slice, stack, ... of the loop
  bool is_constant = false;      ///< of an Enter: into all iterations
  const Op* op = nullptr;        ///< of a record
  AttrsRef attrs;                ///< of the record, the loop or the cond; may be null
  const Graph* graph = nullptr;  ///< the graph that the record is in, held by a scope
  int record = -1;               ///< its place there; -1 for inputs
  std::vector<LoweredPort> inputs;
  std::vector<int> controls;  ///< nodes that have to be done before; dead where one of them is
  std::vector<LoweredOutput> outputs;
};

/// What has iterations of its own: a loop; frame 0 is what is around all loops.
struct LoweredFrame {
  std::string name;   ///< unique: while, while_1
  std::string title;  ///< as messages have it: while_loop "while"
  int parent = -1;
  int parallel_iterations = 1;  ///< so many are in flight at most
  AttrsRef attrs;               ///< LoopAttrs; null for frame 0
  SourceId source = kNoSource;  ///< of the loop
};

/// A graph whose records became nodes: the whole, a body, a condition, a branch.
struct LoweredScope {
  GraphRef graph;
  int parent = -1;  ///< the scope of the loop or cond
  int frame = 0;
  /// Errors say in which iteration: of the frame this is a part of (0), of the one behind it (1);
  /// nullopt: whatever the parent says.
  std::optional<int> ahead;
  std::string first_of = {};  ///< a condition that is asked before the loop begins: its title
};

/// Nodes in the order of the program, but for those that only tell dims; inputs may stand behind
/// their readers in one place: NextIteration behind Merge.
struct LoweredGraph {
  std::vector<LoweredFrame> frames;
  std::vector<LoweredScope> scopes;
  std::vector<LoweredNode> nodes;
  std::vector<LoweredPort> inputs;   ///< of the graph, by place; node -1 where nobody reads it
  std::vector<LoweredPort> outputs;  ///< of the graph
};

/// Loops and conds of a graph taken apart, nested ones too; only what its outputs need stays, so
/// that effects (print) that nothing needs are gone.
///
/// Loops under a policy of what they keep (checkpoints, spilling) stay one node, as their steps
/// have to be stored in order.
LoweredGraph lower(const GraphRef& graph);

/// Throws ArgumentError where the nodes cannot be run: an input from another frame, two LoopCond in
/// a frame, no Enter into one, a number of inputs or outputs that the kind does not have.
void verify(const LoweredGraph& graph);

/// One line per node, by frame.
std::ostream& operator<<(std::ostream& out, const LoweredGraph& graph);
/// Enter, Merge, Switch, ...; of an op its role.
const char* name_of(LoweredKind kind);
const char* name_of(LoweredRole role);

}  // namespace reel
