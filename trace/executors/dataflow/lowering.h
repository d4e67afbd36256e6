// trace/executors/dataflow/lowering.h — Lowering, which builds a LoweredGraph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reel/core/ops/loop/loop.h"
#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// Turns a graph's records into nodes, scope by scope. A scope is the whole graph, or the body,
/// condition or branch of a loop or cond.
///
/// Running records one by one implies two orders that need edges here. A record that mentions a dim
/// waits for the value that binds it (`dim_known`): a control edge. A record without inputs, or
/// with constant ones only (there in every iteration), waits for the pivot of its scope. It then
/// runs when its scope does, and as often.
///
/// Not thread-safe; use one object per run().
class Lowering {
 public:
  LoweredGraph run(const GraphRef& graph);

 private:
  using Port = LoweredPort;
  using Ports = std::vector<LoweredPort>;

  /// A scope during lowering.
  struct Scope {
    int id;
    const Graph* graph;
    int frame;
    Ports values = {};                ///< by value
    std::optional<Port> pivot = {};   ///< live if the scope runs, once per iteration
    std::optional<Port> handle = {};  ///< binds its free symbols
    int part = 0;                     ///< of the handle: 1 for a condition, or the branch on_false
    std::unordered_map<const DimNode*, ValueId> tells =
        {};                            ///< by symbol, the first value that binds it
    std::map<ValueId, int> told = {};  ///< by such a value, the node to wait for
    /// By symbol, the inputs of a body or branch with dims computed from it. These inputs bind
    /// hist + 1 apart from hist: another run may have made their dim.
    std::unordered_map<const DimNode*, std::vector<ValueId>> computed_in = {};
    int opened = -1;  ///< the node that opens the handle
  };
  /// A variable of a loop: a carry, the counter, a stack, ... Its values are at_top of an
  /// iteration, in_body, and last, behind the loop.
  struct Variable {
    Port initial;
    int enter = -1, merge = -1, next = -1;
    Port at_top = {}, in_body = {}, last = {};
  };
  class Loop;  // lower_loop.cpp

  Scope make_scope(const GraphRef& graph, const Scope* parent, int frame);
  void take_inputs(Scope& scope, const Ports& inputs);
  void lower_records(Scope& scope);
  void lower_record(Scope& scope, std::size_t record);
  void lower_cond(Scope& scope, std::size_t record);
  Ports lower_branch(Scope& scope, std::size_t record, bool taken, Port pred,
                     std::map<Port, int>& switches, std::optional<Port> handle);
  void lower_loop(Scope& scope, std::size_t record);
  Ports outputs_of(const Scope& scope) const;
  Ports live_outputs(Scope& scope);
  void make_values(Scope& scope, std::size_t record, const Ports& ports);
  void note_symbols(Scope& scope, ValueId value);

  /// Appends a node and returns its index. named_after: the frame that prefixes its name; -1: the
  /// frame in which it runs.
  int add(LoweredKind kind, const std::string& name, int frame, int scope, Ports inputs,
          int named_after = -1);
  /// Appends a node that computes. It waits for the scope's pivot if no input makes it wait.
  int add_op(Scope& scope, LoweredRole role, const std::string& name, Ports inputs);
  Port identity(Scope& scope, Port of, ValueId value);
  Port add_switch(Scope& scope, Port x, Port pred);
  std::optional<int> dim_known(Scope& scope, const Dim& symbol);
  int tell(Scope& scope, ValueId value);
  /// Makes a node wait until the scope knows a symbol, and dims computed from it.
  void wait_for_dim(Scope& scope, int node, const Dim& symbol);
  void wait_for_dims(Scope& scope, int node, const OpRecord& record);
  void wait(int node, int control);
  /// Returns true if the value is there in every iteration, even in one that does not run.
  bool is_constant(Port port) const;
  std::string unique(const std::string& name);
  /// Orders a record that runs as one node behind the collectives before it.
  void order_collective(int node);
  const LoweredOutput& output(Port port) const {
    return lowered_.nodes[static_cast<std::size_t>(port.node)]
        .outputs[static_cast<std::size_t>(port.port)];
  }
  LoweredNode& node(int i) { return lowered_.nodes[static_cast<std::size_t>(i)]; }

  LoweredGraph lowered_;
  std::unordered_map<std::string, int> names_;
  bool orders_collectives_ = false;  ///< true if the graph has collectives
  int last_collective_ = -1;         ///< the last node with collectives so far
};

/// Drops the nodes that no output of the lowered graph, no collective and no check of values
/// depends on, and renumbers the others.
void drop_unneeded(LoweredGraph& graph);

}  // namespace reel
