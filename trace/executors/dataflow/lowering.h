// trace/executors/dataflow/lowering.h — Lowering, a LoweredGraph while it is being made.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reel/core/ops/loop.h"
#include "reel/trace/executors/dataflow/lowered.h"

namespace reel {

/// Makes nodes of a graph's records, scope by scope: a scope is the whole graph, or the body,
/// condition or branch of a loop or cond.
///
/// What a run of records one by one gives for nothing has to be said with edges here. A record that
/// mentions a dim waits for the value whose type tells it (`dim_known`): a control edge. A record
/// without inputs, or with such only as are there in every iteration, waits for the pivot of its
/// scope, so that it runs where, and as often as, its scope does.
class Lowering {
 public:
  LoweredGraph run(const GraphRef& graph);

 private:
  using Port = LoweredPort;
  using Ports = std::vector<LoweredPort>;

  /// A scope while its records become nodes.
  struct Scope {
    int id;
    const Graph* graph;
    int frame;
    Ports values = {};                ///< by value
    std::optional<Port> pivot = {};   ///< live where the scope runs, once in every iteration
    std::optional<Port> handle = {};  ///< what its free symbols stand for
    int part = 0;                     ///< of the handle: 1 for a condition, or the branch not taken
    std::unordered_map<const DimNode*, ValueId> tells =
        {};                            ///< by symbol, the first value that does
    std::map<ValueId, int> told = {};  ///< by such a value: the node to wait for
    int opened = -1;                   ///< the node that opens the handle
  };
  /// A loop's variable: a carry, the counter, a stack, ...
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

  /// named_after: the frame that its name begins with; that it runs in, where not given.
  int add(LoweredKind kind, const std::string& name, int frame, int scope, Ports inputs,
          int named_after = -1);
  /// A node that computes, in a scope; waits for the pivot where nothing else makes it wait.
  int add_op(Scope& scope, LoweredRole role, const std::string& name, Ports inputs);
  Port identity(Scope& scope, Port of, ValueId value);
  Port add_switch(Scope& scope, Port x, Port pred);
  std::optional<int> dim_known(Scope& scope, const Dim& symbol);
  int tell(Scope& scope, ValueId value);
  void wait_for_dims(Scope& scope, int node, const OpRecord& record);
  void wait(int node, int control);
  /// It is there in every iteration, whether that runs or not.
  bool is_constant(Port port) const;
  std::string unique(const std::string& name);
  const LoweredOutput& output(Port port) const {
    return lowered_.nodes[static_cast<std::size_t>(port.node)]
        .outputs[static_cast<std::size_t>(port.port)];
  }
  LoweredNode& node(int i) { return lowered_.nodes[static_cast<std::size_t>(i)]; }

  LoweredGraph lowered_;
  std::unordered_map<std::string, int> names_;
};

/// What of a lowered graph its outputs need.
void drop_unneeded(LoweredGraph& graph);

}  // namespace reel
