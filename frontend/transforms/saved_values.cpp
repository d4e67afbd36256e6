#include "reel/frontend/transforms/saved_values.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <span>

#include "reel/autodiff/reverse_call.h"
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/control/identity.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/types/mode.h"
#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"
#include "reel/trace/executors/checkpoints/known_steps.h"
#include "reel/trace/executors/checkpoints/policy_costs.h"
#include "reel/trace/executors/plan/base/explain_format.h"
#include "reel/trace/executors/plan/base/infer_types.h"
#include "reel/trace/traced_function.h"

namespace reel {
namespace {

/// Carries the report out of the traced function: thrown in place of a run.
struct Found {
  KeptValues kept;
};

/// The op that makes a value, and the name that the user gave the value.
struct Maker {
  std::string op, name;
};
Maker maker_of(const Graph& graph, ValueId v);

/// Looks into loops and checkpointed functions for the op that makes this output.
Maker maker_of_output(const OpRecord& record, std::size_t output) {
  if (record.op == &checkpointed_op) {
    const Graph& body = *get<CheckpointedAttrs>(record.attrs.get()).body.graph;
    Maker maker = maker_of(body, body.outputs[output]);
    return {str(record.op->name, ": ", maker.op), std::move(maker.name)};
  }
  if (record.op != &loop_op) return {std::string(record.op->name), {}};
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  const Graph& body = *attrs.body.graph;
  if (output >= body.outputs.size()) return {attrs.name + ": trip count", {}};
  if (const LoopLeaf leaf = body_output_at(attrs, output); leaf.is(LeafKind::stack)) {
    const StackRole role = attrs.stacks[leaf.index].role;
    if (role == StackRole::checkpoint_step) return {attrs.name + ": iterations of checkpoints", {}};
    if (role == StackRole::checkpoint_state) return {attrs.name + ": checkpoints of a carry", {}};
  }
  Maker maker = maker_of(body, body.outputs[output]);
  return {str(attrs.name, ": ", maker.op), std::move(maker.name)};
}

Maker maker_of(const Graph& graph, ValueId v) {
  Maker result{"a carry", {}};
  if (const OpRecord* const record = record_of(graph, v)) {
    const std::string name(checkpoint_name_of(*record));
    if (name.empty())
      result = maker_of_output(*record, output_of(graph, *record, v));
    else
      result = {maker_of(graph, graph.inputs_of(*record)[0]).op, name};
  }
  for (const OpRecord& record : graph.records)
    if (const std::string name(checkpoint_name_of(record));
        !name.empty() && graph.inputs_of(record)[0] == v)
      result.name = name;
  return result;
}

/// True if the type has an axis of size 0. The token of a dim has one, though its dim may be known
/// only to a run.
bool is_empty(const TensorType& type) {
  return std::ranges::any_of(type.dims(), [](const Dim& dim) { return dim.raw_size() == 0; });
}

class Finder {
 public:
  /// numbers: known numbers among its inputs. env: dims that are known already.
  Finder(const Graph& graph, const std::vector<TensorType>& inputs, KnownNumbers numbers = {},
         DimEnv env = {})
      : numbers_(std::move(numbers)),
        graph_(graph),
        types_(plan_types(graph, inputs, std::move(env))) {
    // A type that only a run knows names the known dims as all other types do, since a tensor has
    // one Dim in both graphs. An example is a loop with a tensor as trip count.
    for (ValueId v = 0; v < types_.types.size(); ++v)
      if (!types_.is_known[v]) types_.types[v] = with_known_dims(graph.types[v]);
  }

  /// Describes the outputs of the graph, beginning with number `first`.
  KeptValues find(std::size_t first) const {
    KeptValues result;
    std::vector<ValueId> seen;
    for (std::size_t k = first; k < graph_.outputs.size(); ++k) {
      const ValueId v = graph_.outputs[k];
      if (std::count(seen.begin(), seen.end(), v) || is_input(v)) continue;
      seen.push_back(v);
      for (const OpRecord& record : graph_.records) {
        const auto out = graph_.outputs_of(record);
        const auto found = std::find(out.begin(), out.end(), v);
        if (found != out.end())
          result.values.push_back(
              describe(record, v, static_cast<std::size_t>(found - out.begin())));
      }
    }
    return result;
  }

  /// Describes the loops that the graph recomputes.
  std::vector<KeptByLoop> recomputed() const {
    std::vector<KeptByLoop> result;
    for (const OpRecord& record : graph_.records)
      if (record.op == &recompute_op) result.push_back(describe_recomputation(record));
    return result;
  }
  std::vector<TensorType> types_of(std::span<const ValueId> values) const {
    std::vector<TensorType> result;
    for (const ValueId v : values) result.push_back(types_.types[v]);
    return result;
  }
  /// Returns the dims that symbols of the graph stand for, as far as known.
  const DimEnv& env() const { return types_.env; }

 private:
  TensorType with_known_dims(const TensorType& type) {
    bool knows_all = true;
    for_each_symbol(type, [&](const Dim& dim) {
      knows_all = knows_all && (types_.env.knows(dim) || dim.raw_size() >= 0);
    });
    return knows_all ? types_.env.resolve(type) : DimEnv::renaming(types_.env).resolve(type);
  }
  bool is_input(ValueId v) const {
    return std::find(graph_.inputs.begin(), graph_.inputs.end(), v) != graph_.inputs.end();
  }
  KeptValue describe(const OpRecord& record, ValueId v, std::size_t output) const {
    const Maker maker = maker_of(graph_, v);
    KeptValue kept{maker.op, maker.name, types_.types[v], 1, -1, false, -1, 0};
    const bool is_known =
        kept.type.is_list() ? kept.type.element().is_known() : kept.type.is_known();
    if (kept.type.is_list()) {
      kept.count = known_tensors(graph_, v, types_.types, numbers_).value_or(-1);
      kept.type = kept.type.element();
    }
    if (is_known && kept.count >= 0) kept.bytes = kept.count * kept.type.bytes();
    if (is_empty(kept.type)) kept.bytes = 0;
    kept.in_memory = kept.bytes;
    if (is_spilled_output(record, output)) describe_file(record, v, output, kept);
    return kept;
  }
  /// Describes a stack that a loop spills into a file.
  void describe_file(const OpRecord& record, ValueId v, std::size_t output, KeptValue& kept) const {
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    const TensorType& all = types_.types[v];
    const TensorType step = all.is_list() ? all.element() : slice_type(all);
    const bool is_known = !step.is_list() && step.is_known();
    const std::int64_t bytes = is_known ? step.bytes() : 0;
    std::int64_t count = kept.bytes < 0 || !bytes ? -1 : kept.bytes / bytes;
    kept.is_spilled = true;
    if (attrs.stacks[body_output_at(attrs, output).index].is_checkpoint()) {
      const auto file = file_of(record, attrs);
      kept.is_spilled = !file || file->is_used();
      if (!kept.is_spilled) return;
      const auto steps = known_steps(graph_, record, types_.types, numbers_);
      count = file && steps ? checkpoints_taken(attrs, file->slots(), *steps, 1) : -1;
    }
    const Graph& body = *attrs.body.graph;
    const bool is_of_lists = body.types[body.outputs[output]].is_list();
    kept.in_memory =
        is_known ? spilled_bytes_in_memory(attrs, bytes, count, 1, 1, !is_of_lists) : -1;
    const std::int64_t put = is_known && count >= 0 ? count * bytes : -1;
    kept.in_file = put < 0 ? -1 : put > kept.in_memory ? put : 0;
  }
  /// Returns nullopt if the size of the state is unknown.
  std::optional<FileOfCheckpoints> file_of(const OpRecord& record, const LoopAttrs& attrs) const {
    std::vector<std::int64_t> carries;
    const std::vector<TensorType> in = types_of(graph_.inputs_of(record));
    for (const TensorType& carry : operands_of(attrs, in).carries) {
      if (carry.is_list() || !carry.is_known()) return std::nullopt;
      carries.push_back(carry.bytes());
    }
    return FileOfCheckpoints(attrs, std::move(carries));
  }
  std::vector<TensorType> types_of(const OpRecord& record) const {
    return types_of(graph_.inputs_of(record));
  }
  KeptByLoop describe_recomputation(const OpRecord& record) const {
    const auto& attrs = get<RecomputeAttrs>(record.attrs.get());
    const LoopAttrs& loop = attrs.saving();
    const std::vector<TensorType> in = types_of(record), out = types_of(graph_.outputs_of(record));
    const auto steps = known_steps(graph_, loop, graph_.inputs_of(record), types_.types, numbers_);
    const PolicyCosts costs = policy_costs(attrs, in, out, steps, 1, 1);
    return {loop.name, costs.checkpoints, costs.steps, costs.bytes, costs.runs, costs.has_arrays};
  }

  KnownNumbers numbers_;
  const Graph& graph_;
  PlannedTypes types_;
};

}  // namespace

std::int64_t KeptValues::bytes() const {
  std::int64_t result = 0;
  for (const KeptValue& value : values) result += std::max<std::int64_t>(value.bytes, 0);
  return result;
}

std::int64_t KeptValues::bytes_in_memory() const {
  std::int64_t result = 0;
  for (const KeptValue& value : values) result += std::max<std::int64_t>(value.in_memory, 0);
  return result;
}
std::int64_t KeptValues::bytes_in_files() const {
  std::int64_t result = 0;
  for (const KeptValue& value : values) result += std::max<std::int64_t>(value.in_file, 0);
  return result;
}
bool KeptValues::has_unknown() const {
  return std::ranges::any_of(values, [](const KeptValue& value) { return value.bytes < 0; });
}

std::ostream& operator<<(std::ostream& out, const KeptValues& kept) {
  const auto text = [](std::int64_t bytes) {
    return bytes < 0 ? "an unknown number of bytes" : bytes_text(bytes);
  };
  for (const KeptValue& value : kept.values) {
    out << value.op;
    if (!value.name.empty()) out << " \"" << value.name << '"';
    out << ": ";
    if (value.count != 1) out << (value.count < 0 ? "a list of" : str(value.count, " of")) << ' ';
    out << value.type << ", " << text(value.bytes);
    if (value.is_spilled) out << ", in a file except at most " << text(value.in_memory);
    out << '\n';
  }
  out << "in all: " << bytes_text(kept.bytes());
  if (kept.has_unknown()) out << " and values of unknown size";
  if (const std::int64_t in_files = kept.bytes_in_files())
    out << ", at most " << bytes_text(kept.bytes_in_memory()) << " at a time in memory, and "
        << bytes_text(in_files) << " in files";
  out << '\n';
  for (const KeptByLoop& of : kept.loops) {
    out << of.loop << ", until its gradient is done: at most " << text(of.checkpoints)
        << " of checkpoints" << (of.has_arrays ? " without the elements of arrays" : "") << ", and "
        << text(of.bytes);
    if (of.steps >= 0) out << " of " << counted(of.steps, "iteration");
    out << " recomputed at a time";
    if (of.runs >= 0) out << "; each iteration runs " << runs_text(of.runs);
    out << '\n';
  }
  return out;
}

namespace detail {

KeptValues find_residuals(TreeLeaves arguments,
                          const std::function<TreeLeaves(const TreeLeaves&)>& function) {
  if (is_tracing())
    throw TraceError(
        "saved_values: it records a function of its own, and cannot be called in a trace, or in a "
        "body or branch that is being recorded; call it outside");
  TracedFunction traced(
      "saved_values",
      [](const GraphRef& graph, Tensors&& inputs) -> Tensors {
        std::vector<std::uint8_t> wanted;
        for (const ValueId v : graph->inputs) wanted.push_back(is_float(graph->types[v].dtype()));
        const ReversibleGraph reversible = make_reversible(*graph, wanted);
        std::vector<TensorType> in;
        for (const Tensor& input : inputs) in.push_back(input.type());
        const Finder forward(*reversible.forward, in);
        Found found{forward.find(graph->outputs.size())};
        const std::span<const ValueId> outputs = reversible.forward->outputs;
        std::vector<TensorType> back;
        KnownNumbers numbers;
        for (const int i : reversible.cotangents)
          back.push_back(forward.types_of(outputs.subspan(static_cast<std::size_t>(i), 1))[0]);
        for (const int i : reversible.inputs) back.push_back(in[static_cast<std::size_t>(i)]);
        for (const ValueId v : outputs.subspan(graph->outputs.size())) {
          if (const auto number = known_number(*reversible.forward, v))
            numbers[reversible.reverse->inputs[back.size()]] = *number;
          back.push_back(forward.types_of({&v, 1})[0]);
        }
        for (const Tensor& captured : reversible.captured) back.push_back(captured.type());
        found.kept.loops =
            Finder(*reversible.reverse, back, std::move(numbers), forward.env()).recomputed();
        throw found;
      },
      [](const Graph&, const Graph&) { return std::string(); });
  try {
    traced(typeid(void), arguments, [&](const TreeLeaves& promises) {
      return TracedFunction::Recorded{{function(promises), {}}, {}, {}};
    });
  } catch (const Found& found) {
    return found.kept;
  }
  throw InternalError("saved_values: nothing was run");
}

}  // namespace detail
}  // namespace reel
