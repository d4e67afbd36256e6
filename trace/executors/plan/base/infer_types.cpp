#include "reel/trace/executors/plan/base/infer_types.h"

#include <map>
#include <optional>

#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/shape/known_dims.h"
#include "reel/core/ops/shape/lengths_read.h"
#include "reel/core/types/mode.h"
#include "reel/trace/executors/plan/base/plan_views.h"

namespace reel {
namespace {

bool knows_all(const DimEnv& env, const Attrs& attrs) {
  bool result = true;
  attrs.each_symbol(
      [&](const Dim& symbol) { result = result && (env.knows(symbol) || symbol.raw_size() >= 0); });
  return result;
}

/// Returns true if a type rule, applied to actual types, gives the final types. It does unless the
/// kernel decides them. For loops and branches it gives all types that do not depend on a run.
bool tells_types(const Op& op) {
  return !op.kernel_decides_types || &op == &loop_op || &op == &cond_op;
}

/// Finds dims that the graph defines from the lengths of another dim, as self-attention does:
/// Dim("keys", time.lengths()). Their lengths are known before the run; the op, for all other
/// lengths, decides them in the run.
class DefinedDims {
 public:
  DefinedDims(const Graph& graph, DimEnv& env) : graph_(graph), env_(env) {}

  /// Must be called for each record, in order. Returns the type of its output if it defines a dim
  /// of known lengths. Each call makes a new dim.
  std::optional<TensorType> type_of(const OpRecord& record) {
    if (const auto dim = dim_read_by(*record.op, record.attrs.get())) {
      const ValueId made = graph_.outputs_of(record)[0];
      if (is_integer(graph_.types[made].dtype())) lengths_of_.emplace(made, *dim);  // no mask
    }
    if (!name_of_defined_dim(record) || !knows_all(env_, *record.attrs)) return std::nullopt;
    const auto found = lengths_of_.find(graph_.inputs_of(record)[0]);
    if (found == lengths_of_.end() || !(env_.knows(found->second) || found->second.has_size()))
      return std::nullopt;
    const Dim like = env_.resolve(found->second);
    // In a loop's body, lengths in the plan's memory change from iteration to iteration.
    if (!like.has_size() ||
        (like.node() && like.node()->lengths && lies_in_plan(Tensor(like.node()->lengths))))
      return std::nullopt;
    const ModeScope plain({});
    return token_type(dim_defined_by(*record.attrs->resolve(env_), like.lengths()));
  }

 private:
  const Graph& graph_;
  DimEnv& env_;
  std::map<ValueId, Dim> lengths_of_;
};

/// Adds the types of results with known dims, although an operand's dims are not all known: a sum
/// over a dim of unknown length does not have this dim.
void add_types_without_unknown_dims(const Graph& graph, const OpRecord& record,
                                    PlannedTypes& types) {
  for (const ValueId v : graph.outputs_of(record)) {
    const TensorType& recorded = graph.types[v];
    if (recorded.is_list()) continue;
    bool knows = true;
    for_each_symbol(recorded, [&](const Dim& symbol) {
      knows = knows && (types.env.knows(symbol) || symbol.raw_size() >= 0);
    });
    if (!knows) continue;
    const TensorType type = types.env.resolve(recorded);
    if (!type.is_known() || type.node()->has_symbols) continue;
    types.types[v] = type;
    types.is_known[v] = true;
  }
}

}  // namespace

PlannedTypes plan_types(const Graph& graph, std::span<const TensorType> inputs, DimEnv env) {
  PlannedTypes result{
      graph.types, std::vector<std::uint8_t>(graph.types.size()), {}, {}, std::move(env)};
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueId v = graph.inputs[i];
    result.env.bind(graph.types[v], inputs[i]);
    result.types[v] = inputs[i];
    result.is_known[v] = inputs[i].is_known() || inputs[i].is_list();
  }
  const Graph::Schedule& schedule = graph.schedule();
  result.attrs.reserve(graph.records.size());
  result.has_types.reserve(graph.records.size());
  std::vector<TensorType> in;
  DefinedDims defined(graph, result.env);
  for (std::size_t r = 0; r < graph.records.size(); ++r) {
    const OpRecord& record = graph.records[r];
    if (const std::optional<TensorType> token = defined.type_of(record)) {
      const ValueId v = graph.outputs_of(record)[0];
      result.attrs.push_back(record.attrs);
      result.has_types.push_back(true);
      result.types[v] = *token;
      result.is_known[v] = true;
      result.env.bind(graph.types[v], *token);
      continue;
    }
    bool has_types = true;
    in.clear();
    for (const ValueId v : graph.inputs_of(record)) {
      has_types = has_types && result.is_known[v];
      in.push_back(result.types[v]);
    }
    AttrsRef attrs = record.attrs;
    if (schedule.attrs_have_symbols[r]) {
      has_types = has_types && knows_all(result.env, *attrs);
      attrs = has_types ? attrs->resolve(result.env) : AttrsRef();
    }
    has_types = has_types && tells_types(*record.op);
    result.attrs.push_back(attrs);
    result.has_types.push_back(has_types);
    if (!has_types) {
      if (tells_types(*record.op)) add_types_without_unknown_dims(graph, record, result);
      continue;
    }
    TypeList out;
    TypeArgs rule{*record.op, attrs.get(), in, out};
    record.op->type(rule);
    const auto made = graph.outputs_of(record);
    for (std::size_t i = 0; i < made.size(); ++i) {
      const ValueId v = made[i];
      // A list's type, too, is known to a run only if its elements have dims of the trace.
      result.is_known[v] = (out[i].is_known() || out[i].is_list()) && !out[i].node()->has_symbols;
      if (!result.is_known[v]) continue;
      result.types[v] = out[i];
      if (schedule.outputs_have_symbols[r]) result.env.bind(graph.types[v], out[i]);
    }
  }
  return result;
}

bool same_sizes(const PlannedTypes& a, const PlannedTypes& b) {
  if (a.is_known != b.is_known || a.has_types != b.has_types) return false;
  for (std::size_t v = 0; v < a.types.size(); ++v)
    if (a.is_known[v] && a.types[v].sizes() != b.types[v].sizes()) return false;
  return true;
}

}  // namespace reel
