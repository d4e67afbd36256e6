#include "reel/core/ops/control/nested_step_types.h"

#include <algorithm>
#include <optional>

#include "reel/core/graph/known_number.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/control/effects.h"

namespace reel {
namespace {

/// Estimate of the residuals that a loop saves per step, as a multiple of its state (without state:
/// of its stacks). An LSTM saves its gates and both states, an RNN less.
constexpr int kKeptOverState = 4;
/// Stands for an unknown size: larger than any cache.
TensorType open_type() { return TensorType(boolean, {std::int64_t{1} << 30}); }

/// Returns the dim along which an inner loop runs; nullopt if only a run knows its size.
std::optional<Dim> dim_of(const LoopAttrs& loop, const Graph& around, const OpRecord& record) {
  const auto in = around.inputs_of(record);
  const std::vector<TensorType> types = around.types_of(in);
  if (loop.cond) return std::nullopt;
  if (const auto dense = first_dense_slice(loop, types))
    return operands_of(loop, types).slices[*dense].dims()[0];
  for (const LoopStack& stack : loop.stacks)
    if (!stack.is_list && !loop.trips.makes_dim) return stack.dim;
  const auto steps = loop.trips.has_bound ? known_number(around, in[0]) : std::nullopt;
  return steps ? std::optional(Dim(std::max<std::int64_t>(*steps, 0))) : std::nullopt;
}

/// Returns the loops and branches of a graph that its outputs need, or that have effects. Others
/// still exist when a gradient is made, but are gone when its forward loop is planned.
std::vector<const OpRecord*> needed_parts(const Graph& graph) {
  std::vector<std::uint8_t> is_needed(graph.types.size());
  for (const ValueId v : graph.outputs) is_needed[v] = 1;
  std::vector<const OpRecord*> result;
  for (std::size_t r = graph.records.size(); r-- > 0;) {
    const OpRecord& record = graph.records[r];
    const auto out = graph.outputs_of(record);
    if (!has_effects(record) &&
        std::none_of(out.begin(), out.end(), [&](ValueId v) { return is_needed[v]; }))
      continue;
    for (const ValueId v : graph.inputs_of(record)) is_needed[v] = 1;
    if (record.op == &loop_op || record.op == &cond_op) result.push_back(&record);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

class Estimate {
 public:
  /// known: the dims from which the dims of the resulting types may be made. The types become
  /// attributes of the loop's record, in the graph around.
  explicit Estimate(const DimEnv& known) : known_(known) {}
  std::vector<TensorType> types;
  bool has_loops = false;

  /// env: the dims of the graph.
  void add_loops(const Graph& graph, DimEnv& env, const Dims& steps_around) {
    for (const OpRecord* record : needed_parts(graph)) {
      if (record->op == &loop_op) {
        add_loop(graph, *record, env, steps_around);
      } else {
        const auto& attrs = get<CondAttrs>(record->attrs.get());
        for (const SubGraph* branch : {&attrs.on_true, &attrs.on_false})
          add_loops(*branch->graph, env, steps_around);
      }
    }
  }
  void add(const TensorType& type) { types.push_back(with_known_dims(type.dtype(), type.dims())); }

 private:
  void add_loop(const Graph& around, const OpRecord& record, DimEnv& env,
                const Dims& steps_around) {
    has_loops = true;
    const auto& loop = get<LoopAttrs>(record.attrs.get());
    const std::optional<Dim> steps = dim_of(loop, around, record);
    if (!steps) return types.push_back(open_type());
    Dims all = steps_around;
    all.push_back(env.resolve(*steps));
    std::vector<TensorType> inputs = around.types_of(around.inputs_of(record));
    for (TensorType& type : inputs) type = env.resolve(type);
    DimEnv inside = DimEnv::renaming(body_env(loop, inputs));
    const std::size_t before = types.size();
    for (const TensorType& carry : operands_of(loop, inputs).carries) add_kept(carry, all);
    const Graph& body = *loop.body.graph;
    const auto terms = body_outputs(loop).stacks;
    for (std::size_t j = 0; j < terms.size() && types.size() == before; ++j)
      if (!loop.stacks[j].is_raw()) add_kept(inside.resolve(body.types[terms[j]]), all);
    add_loops(body, inside, all);
  }
  /// Adds the residuals that a value of the state or of a step's output may cause.
  void add_kept(const TensorType& type, const Dims& steps) {
    if (!is_float(type.dtype()) || type.is_list()) return;
    Dims dims = steps;
    dims.insert(dims.end(), type.dims().begin(), type.dims().end());
    types.insert(types.end(), kKeptOverState, with_known_dims(type.dtype(), dims));
  }
  /// Only bytes count: if all sizes are known, names are dropped.
  TensorType with_known_dims(DType dtype, const Dims& dims) const {
    if (std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.has_size(); })) {
      std::int64_t numel = 1;
      for (const Dim& dim : dims) numel *= dim.size();
      return TensorType(dtype, {numel});
    }
    for (auto dim = dims.begin(); dim != dims.end(); ++dim) {
      const bool is_known = dim->has_size() || (dim->is_symbol() && known_.knows(*dim));
      if (!dim->is_named() || !is_known || std::find(dims.begin(), dim, *dim) != dim)
        return open_type();
    }
    return TensorType(dtype, dims);
  }

  const DimEnv& known_;
};

}  // namespace

std::vector<TensorType> nested_step_types(const LoopAttrs& attrs,
                                          std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  if (!has_loops(body)) return {};
  DimEnv around, inside = DimEnv::renaming(body_env(attrs, inputs));
  // Elements of a list may differ in their dims, and an empty list has none.
  for (const TensorType& type : inputs)
    if (!type.is_list()) around.bind(type, type);
  Estimate estimate(around);
  estimate.add_loops(body, inside, {});
  if (!estimate.has_loops) return {};
  for (const TensorType& slices : operands_of(attrs, inputs).slices)
    if (!slices.is_list()) estimate.add(slice_type(slices));
  const auto terms = body_outputs(attrs).stacks;
  for (std::size_t j = 0; j < terms.size(); ++j)
    if (!attrs.stacks[j].is_raw() && !attrs.stacks[j].is_list)
      estimate.add(inside.resolve(body.types[terms[j]]));
  return std::move(estimate.types);
}

bool is_step_open(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const std::vector<TensorType> step = attrs.chunking.cost_types.empty()
                                           ? nested_step_types(attrs, inputs)
                                           : attrs.chunking.cost_types;
  return std::find(step.begin(), step.end(), open_type()) != step.end();
}

}  // namespace reel
