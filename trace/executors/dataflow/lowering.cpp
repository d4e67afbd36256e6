// Lowers records other than loops, and conds; loops are in lower_loop.cpp.
#include "reel/trace/executors/dataflow/lowering.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"

namespace reel {

namespace {

/// Returns true if collectives may run inside of the record, which is one node. A loop over
/// recomputed residuals may run the collectives of replay segments.
bool may_run_collectives(const OpRecord& record) {
  return has_collectives(record) ||
         (record.op == &loop_op && get<LoopAttrs>(record.attrs.get()).has_windows());
}

/// Returns the record of the graph that a node runs as one op; null for other nodes.
const OpRecord* record_of(const LoweredNode& node) {
  const bool is_op = node.role == LoweredRole::record && node.kind == LoweredKind::op &&
                     node.graph && node.record >= 0;
  return is_op ? &node.graph->records[static_cast<std::size_t>(node.record)] : nullptr;
}
bool is_collective_node(const LoweredNode& node) {
  const OpRecord* const record = record_of(node);
  return record && has_collectives(*record);
}
bool is_check_node(const LoweredNode& node) {
  const OpRecord* const record = record_of(node);
  return record && has_checks(*record);
}

}  // namespace

LoweredGraph lower(const GraphRef& graph) {
  LoweredGraph lowered = Lowering().run(graph);
#ifndef NDEBUG
  verify(lowered);
#endif
  return lowered;
}

LoweredGraph Lowering::run(const GraphRef& graph) {
  lowered_.frames.emplace_back();
  orders_collectives_ = has_collectives(*graph);
  Scope scope = make_scope(graph, nullptr, 0);
  Ports inputs;
  for (std::size_t i = 0; i < graph->inputs.size(); ++i) {
    const int at = add(LoweredKind::op, "input", 0, scope.id, {});
    node(at).role = LoweredRole::input;
    node(at).index = static_cast<int>(i);
    node(at).outputs = {{graph->types[graph->inputs[i]], graph->inputs[i]}};
    inputs.push_back({at, 0});
  }
  take_inputs(scope, inputs);
  lowered_.inputs = inputs;
  lower_records(scope);
  lowered_.outputs = outputs_of(scope);
  drop_unneeded(lowered_);
  return std::move(lowered_);
}

std::string Lowering::unique(const std::string& name) {
  const int count = names_[name]++;
  return count ? unique(str(name, '_', count)) : name;
}

int Lowering::add(LoweredKind kind, const std::string& name, int frame, int scope, Ports inputs,
                  int named_after) {
  const std::string& prefix =
      lowered_.frames[static_cast<std::size_t>(named_after < 0 ? frame : named_after)].name;
  LoweredNode made;
  made.kind = kind;
  made.name = unique(prefix.empty() ? name : prefix + '/' + name);
  made.frame = frame;
  made.scope = scope;
  made.inputs = std::move(inputs);
  lowered_.nodes.push_back(std::move(made));
  return static_cast<int>(lowered_.nodes.size()) - 1;
}

bool Lowering::is_constant(Port port) const {
  return lowered_.nodes[static_cast<std::size_t>(port.node)].is_constant;
}

void Lowering::wait(int at, int control) {
  auto& controls = node(at).controls;
  if (std::find(controls.begin(), controls.end(), control) == controls.end())
    controls.push_back(control);
}

int Lowering::add_op(Scope& scope, LoweredRole role, const std::string& name, Ports inputs) {
  const bool waits = std::any_of(inputs.begin(), inputs.end(),
                                 [&](const Port& port) { return !is_constant(port); });
  const int at = add(LoweredKind::op, name, scope.frame, scope.id, std::move(inputs));
  node(at).role = role;
  if (!waits && scope.pivot) wait(at, scope.pivot->node);
  return at;
}

LoweredPort Lowering::identity(Scope& scope, Port of, ValueId value) {
  const int at = add_op(scope, LoweredRole::identity, "Identity", {of});
  node(at).outputs = {{output(of).type, value}};
  if (value != kNoValue) node(at).outputs[0].type = scope.graph->types[value];
  return {at, 0};
}

LoweredPort Lowering::add_switch(Scope& scope, Port x, Port pred) {
  const int at = add(LoweredKind::switch_, "Switch", scope.frame, scope.id, {x, pred});
  node(at).outputs = {{output(x).type}, {output(x).type}};
  return {at, 1};
}

Lowering::Scope Lowering::make_scope(const GraphRef& graph, const Scope* parent, int frame) {
  LoweredScope made{graph, parent ? parent->id : -1, frame, std::nullopt};
  lowered_.scopes.push_back(made);
  Scope scope{static_cast<int>(lowered_.scopes.size()) - 1, graph.get(), frame};
  scope.values.resize(graph->types.size());
  return scope;
}

void Lowering::note_symbols(Scope& scope, ValueId value) {
  const std::vector<TensorType>& types = scope.graph->types;
  for_each_bound(types[value], [&](const Dim& symbol) {
    const auto [told_by, is_first] = scope.tells.emplace(symbol.node(), value);
    // A list may not know the dims of its elements (name_alike).
    if (!is_first && types[told_by->second].is_list() && !types[value].is_list())
      told_by->second = value;
  });
}

void Lowering::take_inputs(Scope& scope, const Ports& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId v = scope.graph->inputs[i];
    scope.values[v] = inputs[i];
    note_symbols(scope, v);
    if (scope.id == 0 || scope.graph->types[v].is_list()) continue;
    for (const Dim& dim : scope.graph->types[v].dims())
      if (expression_of(dim))
        for_each_symbol(dim, [&](const Dim& of) { scope.computed_in[of.node()].push_back(v); });
  }
}

std::vector<LoweredPort> Lowering::outputs_of(const Scope& scope) const {
  Ports result;
  for (const ValueId v : scope.graph->outputs) result.push_back(scope.values[v]);
  return result;
}

/// Returns the outputs of a scope, each dead if the scope does not run.
std::vector<LoweredPort> Lowering::live_outputs(Scope& scope) {
  Ports result = outputs_of(scope);
  for (Port& output : result)
    if (is_constant(output)) output = identity(scope, output, kNoValue);
  return result;
}

/// Returns the node after which a value of the scope has bound the dims of its type.
int Lowering::tell(Scope& scope, ValueId value) {
  if (const auto known = scope.told.find(value); known != scope.told.end()) return known->second;
  Port at = scope.values[value];
  const LoweredNode& made_by = node(at.node);
  const bool is_own =
      made_by.kind == LoweredKind::op && made_by.scope == scope.id && output(at).value == value;
  if (!is_own) at = identity(scope, at, value);
  node(at.node).outputs[static_cast<std::size_t>(at.port)].binds = true;
  return scope.told[value] = at.node;
}

/// Returns the node after which the scope knows a symbol; nothing if it knows it from the start.
std::optional<int> Lowering::dim_known(Scope& scope, const Dim& symbol) {
  const auto told_by = scope.tells.find(symbol.node());
  if (told_by != scope.tells.end()) {
    // Inputs of the run bind their dims before it begins.
    const auto& inputs = scope.graph->inputs;
    const bool is_given =
        scope.id == 0 && std::find(inputs.begin(), inputs.end(), told_by->second) != inputs.end();
    return is_given ? std::nullopt : std::optional(tell(scope, told_by->second));
  }
  if (!scope.handle) return std::nullopt;
  if (scope.opened < 0) {
    scope.opened = add_op(scope, LoweredRole::open, "open", {*scope.handle});
    node(scope.opened).index = scope.part;
  }
  return scope.opened;
}

void Lowering::wait_for_dim(Scope& scope, int at, const Dim& symbol) {
  if (const std::optional<int> known = dim_known(scope, symbol); known && *known != at)
    wait(at, *known);
  const auto found = scope.computed_in.find(symbol.node());
  if (found == scope.computed_in.end()) return;
  for (const ValueId v : found->second)
    if (const int known = tell(scope, v); known != at) wait(at, known);
}

void Lowering::wait_for_dims(Scope& scope, int at, const OpRecord& record) {
  const auto need = [&](const Dim& symbol) { wait_for_dim(scope, at, symbol); };
  if (record.attrs) record.attrs->each_symbol(need);
  if (!record.op->kernel_decides_types) return;
  for (const ValueId v : scope.graph->outputs_of(record))
    for_each_symbol(scope.graph->types[v], [&](const Dim& symbol) {
      // A symbol that this record is the first to bind is not known before.
      if (scope.tells.count(symbol.node()) || scope.computed_in.count(symbol.node()) ||
          symbol.has_size())
        need(symbol);
    });
}

/// Makes the ports of a record's outputs values of the scope; their dims may be known already.
void Lowering::make_values(Scope& scope, std::size_t r, const Ports& ports) {
  const OpRecord& record = scope.graph->records[r];
  const auto values = scope.graph->outputs_of(record);
  for (std::size_t k = 0; k < values.size(); ++k) {
    Port at = ports[k];
    const TensorType& type = scope.graph->types[values[k]];
    const bool is_own = node(at.node).kind == LoweredKind::op && node(at.node).scope == scope.id &&
                        output(at).value == values[k];
    if (type.node()->has_symbols && record.op->kernel_decides_types) {
      if (!is_own) at = identity(scope, at, values[k]);
      node(at.node).outputs[static_cast<std::size_t>(at.port)].has_known_dims = true;
      wait_for_dims(scope, at.node, record);
    }
    scope.values[values[k]] = at;
  }
  for (const ValueId v : values) note_symbols(scope, v);
}

void Lowering::lower_records(Scope& scope) {
  for (std::size_t r = 0; r < scope.graph->records.size(); ++r) {
    const OpRecord& record = scope.graph->records[r];
    const std::size_t first = lowered_.nodes.size();
    const auto runs_as_one = [&] {
      if (has_collectives(record)) return true;
      const auto& attrs = get<LoopAttrs>(record.attrs.get());
      return attrs.chunking.over_chunks || attrs.chunking.within_chunk || attrs.has_windows() ||
             attrs.keeps_few_steps() || (attrs.trips.is_reverse && attrs.cond);
    };
    if (record.op == &loop_op && !runs_as_one())
      lower_loop(scope, r);
    else if (record.op == &cond_op && !has_collectives(record))
      lower_cond(scope, r);
    else
      lower_record(scope, r);
    for (std::size_t i = first; i < lowered_.nodes.size(); ++i)
      if (LoweredNode& made = lowered_.nodes[i]; !made.graph) {
        made.graph = scope.graph;
        made.record = static_cast<int>(r);
      }
  }
}

void Lowering::lower_record(Scope& scope, std::size_t r) {
  const OpRecord& record = scope.graph->records[r];
  Ports inputs;
  for (const ValueId v : scope.graph->inputs_of(record)) inputs.push_back(scope.values[v]);
  const int at = add_op(scope, LoweredRole::record, std::string(record.op->name), inputs);
  node(at).op = record.op;
  node(at).attrs = record.attrs;
  Ports made;
  for (const ValueId v : scope.graph->outputs_of(record)) {
    node(at).outputs.push_back({scope.graph->types[v], v});
    made.push_back({at, static_cast<int>(made.size())});
  }
  wait_for_dims(scope, at, record);
  // All of these are in the outermost scope, since a loop or cond with one inside stays one node.
  if (scope.id == 0 && orders_collectives_ && may_run_collectives(record)) order_collective(at);
  make_values(scope, r, made);
}

void Lowering::order_collective(int at) {
  if (last_collective_ >= 0) wait(at, last_collective_);
  last_collective_ = at;
}

void Lowering::lower_cond(Scope& scope, std::size_t r) {
  const OpRecord& record = scope.graph->records[r];
  Port pred = scope.values[scope.graph->inputs_of(record)[0]];
  if (is_constant(pred)) pred = identity(scope, pred, kNoValue);
  std::optional<Port> handle;
  if (scope.graph->schedule().attrs_have_symbols[r]) {
    const int at = add_op(scope, LoweredRole::bindings, "bindings", {});
    node(at).attrs = record.attrs;
    node(at).outputs = {{}};
    record.attrs->each_symbol([&](const Dim& symbol) { wait_for_dim(scope, at, symbol); });
    handle = Port{at, 0};
  }
  std::map<Port, int> switches;
  const Ports yes = lower_branch(scope, r, true, pred, switches, handle),
              no = lower_branch(scope, r, false, pred, switches, handle);
  Ports merged;
  for (std::size_t k = 0; k < yes.size(); ++k) {
    const int at = add(LoweredKind::merge, "Merge", scope.frame, scope.id, {no[k], yes[k]});
    const ValueId v = scope.graph->outputs_of(record)[k];
    node(at).outputs = {{scope.graph->types[v], v}};
    merged.push_back({at, 0});
  }
  make_values(scope, r, merged);
}

/// switches: by value, the Switch that it has already.
std::vector<LoweredPort> Lowering::lower_branch(Scope& scope, std::size_t r, bool taken, Port pred,
                                                std::map<Port, int>& switches,
                                                std::optional<Port> handle) {
  const OpRecord& record = scope.graph->records[r];
  const auto& attrs = get<CondAttrs>(record.attrs.get());
  const auto& captures = taken ? attrs.true_captures : attrs.false_captures;
  const auto switched = [&](Port x) {
    const auto [known, is_new] = switches.emplace(x, -1);
    if (is_new) known->second = add_switch(scope, x, pred).node;
    return Port{known->second, taken};
  };
  const GraphRef& graph = (taken ? attrs.on_true : attrs.on_false).graph;
  Scope branch = make_scope(graph, &scope, scope.frame);
  Ports inputs;
  for (const int capture : captures) {
    const Port x =
        scope.values[scope.graph->inputs_of(record)[1 + static_cast<std::size_t>(capture)]];
    // A constant goes to its readers directly, as they wait for the pivot.
    inputs.push_back(is_constant(x) ? x : switched(x));
  }
  const Port pivot = identity(branch, switched(pred), kNoValue);
  branch.pivot = pivot;
  if (handle) branch.handle = switched(*handle);
  branch.part = !taken;
  take_inputs(branch, inputs);
  lower_records(branch);
  return live_outputs(branch);
}

void drop_unneeded(LoweredGraph& graph) {
  std::vector<int> new_place(graph.nodes.size(), -1), todo;
  const auto need = [&](int i) {
    if (i >= 0 && new_place[static_cast<std::size_t>(i)] < 0) {
      new_place[static_cast<std::size_t>(i)] = 0;
      todo.push_back(i);
    }
  };
  for (const LoweredPort& output : graph.outputs) need(output.node);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_collective_node(graph.nodes[i]) || is_check_node(graph.nodes[i]))
      need(static_cast<int>(i));
  while (!todo.empty()) {
    const LoweredNode& of = graph.nodes[static_cast<std::size_t>(todo.back())];
    todo.pop_back();
    for (const LoweredPort& input : of.inputs) need(input.node);
    for (const int control : of.controls) need(control);
  }
  std::vector<LoweredNode> kept;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (new_place[i] == 0) {
      new_place[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(graph.nodes[i]));
    }
  const auto move = [&](int& i) {
    if (i >= 0) i = new_place[static_cast<std::size_t>(i)];
  };
  for (LoweredNode& of : kept) {
    for (LoweredPort& input : of.inputs) move(input.node);
    for (int& control : of.controls) move(control);
  }
  for (LoweredPort& input : graph.inputs) move(input.node);
  for (LoweredPort& output : graph.outputs) move(output.node);
  graph.nodes = std::move(kept);
}

}  // namespace reel
