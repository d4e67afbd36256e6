#include "reel/autodiff/call.h"

#include <algorithm>
#include <map>
#include <memory>

#include "reel/autodiff/reverse_call.h"
#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/replay.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

/// A graph as an attribute, compared by identity.
struct CalledGraph : GraphRef {
  using GraphRef::GraphRef;
  CalledGraph(GraphRef graph) : GraphRef(std::move(graph)) {}
  bool operator==(const CalledGraph& other) const { return get() == other.get(); }
};
std::size_t hash_of(const CalledGraph& graph) {
  return reinterpret_cast<std::size_t>(graph.get()) >> 4;
}
std::ostream& operator<<(std::ostream& out, const CalledGraph& graph) { return out << graph->name; }

/// One call on eager tapes.
///
/// The residuals for the innermost tape are outputs that the next tape differentiates, and so on.
/// Each tape therefore has a reversal of the graph that the previous one runs.
struct CallAttrs {
  CalledGraph graph;
  /// Number of outputs: of the function, then with the residuals of the first reversal, and so on.
  std::vector<std::size_t> ends;
  std::vector<std::shared_ptr<const ReversibleGraph>> reversals;
  GraphRunner runner;
  template <class F>
  static void fields(F&& f) {
    f("graph", &CallAttrs::graph);
    f("ends", &CallAttrs::ends);
  }
};

/// Returns the cotangent, or zeros if there is none. Zeros for a list have the types of its
/// elements, which may differ. If a list stands for steps of one known type, its zeros are an empty
/// list, as a loop reads missing elements as zeros of the list's type. In a trace inside, the list
/// is a capture without data.
Tensor cotangent_or_zeros(Vjp& at, std::size_t output) {
  const TensorType& type = at.output_type(output);
  if (!type.is_list() || at.has_cotangent(output)) return at.cotangent(output);
  const Tensor& list = at.output(output);
  const ResidualValue* const residual = residual_value(list);
  const bool is_one_type = residual && residual->steps->is_uniform() && type.is_known();
  return is_one_type ? empty_list(type) : list_zeros_like(list);
}

/// Runs the reversed graph. In a trace, where values of the call are captures, inlines it.
Tensors run_reversed(const CallAttrs& attrs, const ReversibleGraph& reversible, Tensors inputs) {
  if (!thread_mode.builder) return call_graph(reversible.reverse, std::move(inputs), attrs.runner);
  for (Tensor& input : inputs) input = thread_mode.builder->lift(input);
  DimEnv env;
  return replay(*reversible.reverse, inputs, env);
}

void call_vjp(Vjp& at) {
  const CallAttrs& attrs = at.attr<CallAttrs>();
  std::size_t last = 0;
  for (std::size_t i = 0; i < at.output_count(); ++i)
    if (at.has_cotangent(i)) last = i;
  std::size_t level = 0;
  while (last >= attrs.ends[level]) ++level;
  const ReversibleGraph& reversible = *attrs.reversals[level];
  Tensors inputs;
  for (const std::size_t i : reversible.cotangents) inputs.push_back(cotangent_or_zeros(at, i));
  for (const std::size_t i : reversible.inputs) inputs.push_back(at.input(i));
  for (std::size_t i = attrs.ends[level]; i < attrs.ends[level + 1]; ++i)
    inputs.push_back(at.output(i));
  inputs.insert(inputs.end(), reversible.captured.begin(), reversible.captured.end());
  const Tensors results = run_reversed(attrs, reversible, std::move(inputs));
  // A tensor that is both an input and captured gets its contributions in the order of the eager
  // tape: a loop's captures, its slices, its initial values, each from the last one on.
  for (std::size_t k = reversible.wanted.size(); k-- > 0;)
    if (const int numbers = reversible.row_numbers[k]; numbers >= 0)
      at.add_rows(reversible.wanted[k], results[k], results[numbers]);
    else if (const int presence = reversible.presences[k]; presence >= 0)
      at.add(reversible.wanted[k], results[k], results[presence] > 0);
    else
      at.add(reversible.wanted[k], results[k]);
}

const Op call_op{
    .name = "call",
    .type =
        [](TypeArgs& a) {
          const Graph& graph = *a.attr<CallAttrs>().graph;
          DimEnv env;
          for (std::size_t i = 0; i < graph.inputs.size(); ++i)
            env.bind(graph.types[graph.inputs[i]], a.in[i]);
          for (const ValueId v : graph.outputs) a.out.push_back(env.resolve(graph.types[v]));
        },
    .kernel =
        [](KernelArgs& a) {
          Tensors inputs;
          for (std::size_t i = 0; i < a.in.size(); ++i) inputs.push_back(a.input(i));
          *a.decided = a.attr<CallAttrs>().runner(a.attr<CallAttrs>().graph, std::move(inputs));
        },
    .vjp = call_vjp,
    .reads_by =
        [](const Attrs* attrs, std::uint32_t) {
          const auto& call = get<CallAttrs>(attrs);
          OpReads reads{.inputs = kAll};
          // Residuals and lists: zeros as their cotangents need their sizes.
          for (std::size_t k = 0; k < call.graph->outputs.size(); ++k)
            if (k >= call.ends[0] || call.graph->types[call.graph->outputs[k]].is_list())
              reads.outputs |= 1u << std::min<std::size_t>(k, 31);
          return reads;
        },
    .kernel_decides_types = true,
    .takes_lists = kAll,
};

using TakesRows = std::vector<std::uint8_t>;  // by input

/// The reversals of one graph, by the inputs that take cotangents as rows.
using Reversals = std::map<TakesRows, std::shared_ptr<const ReversibleGraph>>;

/// Returns the reversal with respect to all floating inputs; made once per graph.
std::shared_ptr<const ReversibleGraph> reversible_form(const Graph& graph, const TakesRows& rows) {
  const std::lock_guard lock(graph.derived.mutex);
  const auto known = std::static_pointer_cast<const Reversals>(graph.derived.value);
  if (known && known->count(rows)) return known->at(rows);
  std::vector<std::uint8_t> wanted;
  for (const ValueId v : graph.inputs) wanted.push_back(is_float(graph.types[v].dtype()));
  auto all = std::make_shared<Reversals>(known ? *known : Reversals());
  const auto made = std::make_shared<const ReversibleGraph>(make_reversible(graph, wanted, rows));
  all->emplace(rows, made);
  graph.derived.value = std::move(all);
  return made;
}

/// Returns an entry for each tape that tracks an input, innermost first: by input, whether it takes
/// the cotangent as rows.
std::vector<TakesRows> tapes_of(const Tensors& inputs) {
  std::vector<TakesRows> result;
  for (const Recorder* tape = thread_mode.tape; tape; tape = tape->outer) {
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](const Tensor& input) { return tape->is_tracked(input); }))
      continue;
    result.emplace_back();
    for (const Tensor& input : inputs) result.back().push_back(tape->takes_rows(input));
  }
  return result;
}

Reversals reversals_of(const Graph& graph) {
  const std::lock_guard lock(graph.derived.mutex);
  const auto all = std::static_pointer_cast<const Reversals>(graph.derived.value);
  return all ? *all : Reversals();
}

}  // namespace

std::vector<GraphUnderTapes> graphs_under_tapes(const Graph& graph) {
  std::vector<GraphUnderTapes> result;
  for (const auto& [rows, reversal] : reversals_of(graph)) {
    const bool takes_rows = std::find(rows.begin(), rows.end(), 1) != rows.end();
    for (const auto& [name, part] : {std::pair{", under a tape", reversal->forward},
                                     std::pair{", its gradient", reversal->reverse}}) {
      const std::string what = takes_rows ? str(name, " in rows") : name;
      result.push_back({what, part});
      for (auto& [further, inner] : graphs_under_tapes(*part))
        result.push_back({what + further, inner});
    }
  }
  return result;
}

Tensors call_graph(const GraphRef& graph, Tensors&& inputs, const GraphRunner& runner) {
  if (!thread_mode.tape && !thread_mode.entries) return runner(graph, std::move(inputs));
  CallAttrs attrs{graph, {graph->outputs.size()}, {}, runner};
  for (const TakesRows& rows : tapes_of(inputs)) {
    attrs.reversals.push_back(reversible_form(*attrs.graph, rows));
    attrs.graph = GraphRef(attrs.reversals.back()->forward);
    attrs.ends.push_back(attrs.graph->outputs.size());
  }
  Tensors results = bind_all(call_op, inputs, make_attrs(attrs));
  results.resize(graph->outputs.size());
  return results;
}

}  // namespace reel
