#include "reel/frontend/saved_values.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <span>

#include "reel/autodiff/reverse_call.h"
#include "reel/core/errors.h"
#include "reel/core/ops/checkpointed.h"
#include "reel/core/ops/identity.h"
#include "reel/core/ops/loop.h"
#include "reel/core/str.h"
#include "reel/trace/executors/kept_steps.h"
#include "reel/trace/executors/plan/types.h"
#include "reel/trace/executors/plan/words.h"
#include "reel/trace/executors/policy_costs.h"
#include "reel/trace/traced_function.h"

namespace reel {
namespace {

/// Thrown where a run would begin.
struct Found {
  KeptValues kept;
};

std::span<const TensorType> carries_of(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  return inputs.subspan(attrs.first_carry(), static_cast<std::size_t>(attrs.carries));
}

/// What makes a value, and the name that the user gave it.
struct Maker {
  std::string op, name;
};
Maker maker_of(const Graph& graph, ValueId v) {
  Maker maker{"a carry", {}};
  for (const OpRecord& record : graph.records) {
    const std::string name(checkpoint_name_of(record));
    const auto in = graph.inputs_of(record), out = graph.outputs_of(record);
    if (std::find(out.begin(), out.end(), v) != out.end()) {
      maker.op = name.empty() ? record.op->name : maker_of(graph, in[0]).op;
      if (!name.empty()) maker.name = name;
    } else if (!name.empty() && in[0] == v) {
      maker.name = name;
    }
  }
  return maker;
}

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<TensorType>& inputs)
      : graph_(graph), types_(plan_types(graph, inputs, DimEnv())) {}

  /// Outputs of the graph, from one on.
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

  /// Of the loops whose steps the graph has run again.
  std::vector<KeptByLoop> recalled() const {
    std::vector<KeptByLoop> result;
    for (const OpRecord& record : graph_.records)
      if (record.op == &recall_op) result.push_back(describe_recall(record));
    return result;
  }
  std::vector<TensorType> types_of(std::span<const ValueId> values) const {
    std::vector<TensorType> result;
    for (const ValueId v : values) result.push_back(types_.types[v]);
    return result;
  }

 private:
  bool is_input(ValueId v) const {
    return std::find(graph_.inputs.begin(), graph_.inputs.end(), v) != graph_.inputs.end();
  }
  KeptValue describe(const OpRecord& record, ValueId v, std::size_t output) const {
    const Maker maker = maker_of(graph_, v);
    KeptValue kept{maker.op, maker.name, types_.types[v], 1, -1, is_spilled_output(record, output),
                   -1};
    if (record.op == &loop_op) describe_step(record, output, kept);
    if (record.op == &checkpointed_op) {
      const Graph& body = *get<CheckpointedAttrs>(record.attrs.get()).body.graph;
      const Maker inside = maker_of(body, body.outputs[output]);
      kept.op += ": " + inside.op;
      kept.name = inside.name;
    }
    const bool is_known =
        kept.type.is_list() ? kept.type.element().is_known() : kept.type.is_known();
    if (kept.type.is_list()) {
      kept.type = kept.type.element();
      if (kept.count == 1) kept.count = -1;
    }
    if (is_known && kept.count >= 0) kept.bytes = kept.count * kept.type.bytes();
    kept.in_memory = kept.is_spilled ? spilled_in_memory(record, v, kept) : kept.bytes;
    return kept;
  }
  std::int64_t spilled_in_memory(const OpRecord& record, ValueId v, const KeptValue& kept) const {
    const TensorType& all = types_.types[v];
    const TensorType step = all.is_list() ? all.element() : slice_type(all);
    if (step.is_list() || !step.is_known()) return -1;
    const std::int64_t bytes = step.bytes();
    return spilled_bytes_in_memory(get<LoopAttrs>(record.attrs.get()), bytes,
                                   kept.bytes < 0 || !bytes ? -1 : kept.bytes / bytes, 1);
  }
  /// What of a step a loop stacks.
  void describe_step(const OpRecord& record, std::size_t output, KeptValue& kept) const {
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    const Graph& body = *attrs.body.graph;
    kept.op = attrs.name;
    if (output >= body.outputs.size()) {
      kept.op += ": number of steps";
      return;
    }
    const std::size_t stack = output - attrs.first_stack();
    const bool is_stack = output >= attrs.first_stack() && output < attrs.first_sum();
    if (is_stack && attrs.is_checkpoint(stack)) {
      kept.op += attrs.is_steps(stack) ? ": steps of checkpoints" : ": checkpoints of a carry";
      kept.count = checkpoints_of(record, attrs);
      return;
    }
    const Maker maker = maker_of(body, body.outputs[output]);
    kept.op += ": " + maker.op;
    kept.name = maker.name;
    if (!is_stack || !attrs.is_list(stack)) return;
    // What a loop inside keeps is a list in each step, as long as that loop likes.
    const bool is_of_lists = body.types[body.outputs[output]].is_list();
    kept.count = is_of_lists ? -1 : steps_of(attrs, types_of(record)).value_or(-1);
  }
  std::vector<TensorType> types_of(const OpRecord& record) const {
    return types_of(graph_.inputs_of(record));
  }
  KeptByLoop describe_recall(const OpRecord& record) const {
    const auto& attrs = get<RecallAttrs>(record.attrs.get());
    const LoopAttrs& loop = attrs.saving();
    const std::vector<TensorType> in = types_of(record), out = types_of(graph_.outputs_of(record));
    const PolicyCosts costs = policy_costs(attrs, in, out, steps_of(loop, in), 1, 1);
    return {loop.name, costs.checkpoints, costs.steps, costs.bytes, costs.runs};
  }
  std::int64_t checkpoints_of(const OpRecord& record, const LoopAttrs& attrs) const {
    const std::vector<TensorType> in = types_of(record);
    const auto steps = steps_of(attrs, in);
    const auto state_bytes = bytes_of(carries_of(attrs, in));
    if (!steps || !state_bytes) return -1;
    KeptSteps kept(attrs.checkpoint_steps,
                   attrs.checkpoint_bytes ? slots_of(attrs, *state_bytes) : 0);
    for (std::int64_t k = 0; k < *steps; ++k) kept.before(k);
    return kept.taken();
  }

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
  for (const KeptValue& value : values)
    if (value.is_spilled && value.bytes > value.in_memory) result += value.bytes;
  return result;
}

std::ostream& operator<<(std::ostream& out, const KeptValues& kept) {
  const auto text = [](std::int64_t bytes) {
    return bytes < 0 ? "as many bytes as a run tells" : bytes_text(bytes);
  };
  for (const KeptValue& value : kept.values) {
    out << value.op;
    if (!value.name.empty()) out << " \"" << value.name << '"';
    out << ": ";
    if (value.count != 1) out << (value.count < 0 ? "a list of" : str(value.count, " of")) << ' ';
    out << value.type << ", " << text(value.bytes);
    if (value.is_spilled) out << ", in a file but for at most " << text(value.in_memory);
    out << '\n';
  }
  out << "in all: " << bytes_text(kept.bytes());
  if (const std::int64_t in_files = kept.bytes_in_files())
    out << ", at most " << bytes_text(kept.bytes_in_memory()) << " at a time in memory, and "
        << bytes_text(in_files) << " in files";
  out << '\n';
  for (const KeptByLoop& of : kept.loops) {
    out << of.loop << ", until its gradient is done: at most " << text(of.checkpoints)
        << " of checkpoints, and " << text(of.bytes);
    if (of.steps >= 0) out << " of " << counted(of.steps, "step");
    out << " run again at a time";
    if (of.runs >= 0) out << "; each step runs " << runs_text(of.runs);
    out << '\n';
  }
  return out;
}

namespace detail {

KeptValues find_kept(TreeLeaves arguments,
                     const std::function<TreeLeaves(const TreeLeaves&)>& function) {
  TracedFunction traced(
      "saved_values",
      [](const GraphRef& graph, Tensors inputs) -> Tensors {
        std::vector<std::uint8_t> wanted;
        for (const ValueId v : graph->inputs) wanted.push_back(is_float(graph->types[v].dtype()));
        const ReversibleGraph reversible = make_reversible(*graph, wanted);
        std::vector<TensorType> in;
        for (const Tensor& input : inputs) in.push_back(input.type());
        const Finder forward(*reversible.forward, in);
        Found found{forward.find(graph->outputs.size())};
        const std::span<const ValueId> outputs = reversible.forward->outputs;
        std::vector<TensorType> back;
        for (const int i : reversible.cotangents)
          back.push_back(forward.types_of(outputs.subspan(static_cast<std::size_t>(i), 1))[0]);
        for (const int i : reversible.inputs) back.push_back(in[static_cast<std::size_t>(i)]);
        for (const TensorType& type : forward.types_of(outputs.subspan(graph->outputs.size())))
          back.push_back(type);
        for (const Tensor& captured : reversible.captured) back.push_back(captured.type());
        found.kept.loops = Finder(*reversible.reverse, back).recalled();
        throw found;
      },
      [](const Graph&) { return std::string(); });
  try {
    traced(std::move(arguments), [&](const TreeLeaves& promises) {
      return TracedFunction::Recorded{{function(promises), nullptr}, {}, {}};
    });
  } catch (const Found& found) {
    return found.kept;
  }
  throw InternalError("saved_values: nothing was run");
}

}  // namespace detail
}  // namespace reel
