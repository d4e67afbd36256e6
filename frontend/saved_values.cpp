#include "reel/frontend/saved_values.h"

#include <algorithm>
#include <ostream>

#include "reel/autodiff/reverse_call.h"
#include "reel/core/errors.h"
#include "reel/core/ops/checkpointed.h"
#include "reel/core/ops/identity.h"
#include "reel/core/ops/loop.h"
#include "reel/core/str.h"
#include "reel/trace/executors/kept_steps.h"
#include "reel/trace/executors/plan/types.h"
#include "reel/trace/executors/plan/words.h"
#include "reel/trace/traced_function.h"

namespace reel {
namespace {

/// Thrown where a run would begin.
struct Found {
  KeptValues kept;
};

/// How many steps a loop runs, where types say so; else -1.
std::int64_t steps_that_run(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  if (!attrs.is_full || !attrs.slices) return -1;
  const TensorType& slices = inputs[attrs.first_slice()];
  return slices.is_list() || !slices.dims()[0].has_size() ? -1 : slices.dims()[0].size();
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
  Finder(const Graph& graph, const Tensors& inputs) : graph_(graph) {
    std::vector<TensorType> in;
    for (const Tensor& input : inputs) in.push_back(input.type());
    types_ = plan_types(graph, in, DimEnv());
  }

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

 private:
  bool is_input(ValueId v) const {
    return std::find(graph_.inputs.begin(), graph_.inputs.end(), v) != graph_.inputs.end();
  }
  KeptValue describe(const OpRecord& record, ValueId v, std::size_t output) const {
    const Maker maker = maker_of(graph_, v);
    KeptValue kept{maker.op, maker.name, types_.types[v], 1, -1, is_spilled_output(record, output)};
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
    return kept;
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
    kept.count = is_of_lists ? -1 : steps_that_run(attrs, types_of(record));
  }
  std::vector<TensorType> types_of(const OpRecord& record) const {
    std::vector<TensorType> result;
    for (const ValueId v : graph_.inputs_of(record)) result.push_back(types_.types[v]);
    return result;
  }
  std::int64_t checkpoints_of(const OpRecord& record, const LoopAttrs& attrs) const {
    const std::vector<TensorType> in = types_of(record);
    const std::int64_t steps = steps_that_run(attrs, in);
    std::int64_t state = 0;
    for (std::size_t i = attrs.first_carry(); i < attrs.first_slice(); ++i) {
      if (in[i].is_list() || !in[i].is_known()) return -1;
      state += in[i].bytes();
    }
    if (steps < 0) return -1;
    KeptSteps kept(attrs.checkpoint_steps, attrs.checkpoint_bytes ? slots_of(attrs, state) : 0);
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < steps; ++k) {
      const KeptSteps::Decision now = kept.before(k);
      for (int i = 0; i < now.drops; ++i) count = (count + 1) / 2;
      count += now.takes;
    }
    return count;
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

std::ostream& operator<<(std::ostream& out, const KeptValues& kept) {
  for (const KeptValue& value : kept.values) {
    out << value.op;
    if (!value.name.empty()) out << " \"" << value.name << '"';
    out << ": ";
    if (value.count != 1) out << (value.count < 0 ? "a list of" : str(value.count, " of")) << ' ';
    out << value.type << ", "
        << (value.bytes < 0 ? "as many bytes as a run tells" : bytes_text(value.bytes))
        << (value.is_spilled ? ", in a file" : "") << '\n';
  }
  return out << "in all: " << bytes_text(kept.bytes()) << '\n';
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
        throw Found{Finder(*reversible.forward, inputs).find(graph->outputs.size())};
      },
      [](const Graph&) { return std::string(); });
  try {
    traced(std::move(arguments), [&](const TreeLeaves& promises) {
      return TracedFunction::Traced{function(promises), nullptr};
    });
  } catch (const Found& found) {
    return found.kept;
  }
  throw InternalError("saved_values: nothing was run");
}

}  // namespace detail
}  // namespace reel
