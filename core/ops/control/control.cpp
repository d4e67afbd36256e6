// loop and cond, the ops with sub-graphs.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/control/checkpointed.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/control/joined_dims.h"
#include "reel/core/ops/control/loop.h"
#include "reel/core/ops/control/recompute.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"

namespace reel {
namespace {

Dim new_symbol(const LoopAttrs& attrs) {
  if (attrs.new_dim.empty()) return Dim::unknown();
  Ref<DimNode> node(new DimNode);
  node->name = attrs.new_dim;
  node->kind = attrs.entry_dims.empty() ? DimKind::dynamic : DimKind::ragged;
  node->is_symbol = true;
  node->length_dims = attrs.entry_dims;
  return Dim::of_node(node);
}

/// Makes a new symbol for each dim that a loop's iterations change.
class NewDims {
 public:
  NewDims(const LoopAttrs& attrs, DimEnv& env) : changing_(changing_dims(attrs)), env_(env) {
    for (const Dim& dim : changing_) make(dim);
  }
  /// True if the dim changes, or is computed from a dim that changes.
  bool has(const Dim& dim) const {
    if (const DimExpression* expression = expression_of(dim))
      return std::any_of(expression->operands.begin(), expression->operands.end(),
                         [&](const Dim& of) { return has(of); });
    return contains(changing_, dim);
  }
  Dim of(const Dim& dim) const {
    if (!has(dim)) return env_.knows(dim) ? env_.resolve(dim) : dim;
    if (const DimExpression* expression = expression_of(dim)) {
      Dims operands;
      for (const Dim& operand : expression->operands) operands.push_back(of(operand));
      return recompute(*expression, operands);
    }
    return made_[find(changing_, dim)];
  }

 private:
  void make(const Dim& dim) {
    Ref<DimNode> node(new DimNode);
    node->name = dim.name();
    node->kind = dim.is_ragged() ? DimKind::ragged : DimKind::dynamic;
    node->is_symbol = true;
    for (const Dim& over : dim.length_dims()) node->length_dims.push_back(of(over));
    made_.push_back(Dim::of_node(node));
  }

  Dims changing_, made_;
  DimEnv& env_;
};

/// The dims of a list's elements, seen from outside of the loop that makes them.
///
/// A dim that only an iteration knows stays a symbol of the body. The dims that its lengths run
/// over are those outside: whoever learns dims from the list's type learns these too (DimEnv).
class ElementDims {
 public:
  ElementDims(const NewDims& last, DimEnv& env) : last_(last), env_(env) {}

  TensorType operator()(const TensorType& element) {
    if (!element.node()->has_symbols) return element;
    Dims dims;
    for (const Dim& dim : element.dims()) dims.push_back(of(dim));
    return element.with(dims);
  }

 private:
  Dim of(const Dim& dim) {
    if (!dim.is_named() || last_.has(dim)) return dim;
    if (env_.knows(dim)) return env_.resolve(dim);
    if (!dim.is_symbol() || dim.length_dims().empty()) return dim;
    for (const auto& [inside, outside] : made_)
      if (inside == dim) return outside;
    Dims over;
    for (const Dim& length_dim : dim.length_dims()) over.push_back(of(length_dim));
    if (over == dim.length_dims()) return dim;
    Ref<DimNode> node(new DimNode);
    node->name = dim.name();
    node->kind = DimKind::ragged;
    node->is_symbol = true;
    node->length_dims = over;
    return made_.emplace_back(dim, Dim::of_node(node)).second;
  }

  const NewDims& last_;
  DimEnv& env_;
  std::vector<std::pair<Dim, Dim>> made_;
};

void loop_type(TypeArgs& a) {
  const LoopAttrs& attrs = a.attr<LoopAttrs>();
  const Graph& body = *attrs.body.graph;
  DimEnv env = body_env(attrs, a.in);
  const NewDims last(attrs, env);
  // Returns a type of the body as seen from outside: dims that an iteration determines are unknown.
  const auto outside = [&](const TensorType& type) {
    if (!type.node()->has_symbols) return type;
    Dims dims;
    for (const Dim& dim : type.dims())
      dims.push_back(last.has(dim)                        ? Dim::unknown()
                     : env.knows(dim)                     ? env.resolve(dim)
                     : !dim.is_symbol() || dim.has_size() ? dim
                                                          : Dim::unknown());
    return type.with(dims);
  };
  // A carry with sizes that may change leaves with unknown sizes.
  for (int i = 0; i < attrs.carries; ++i) {
    const TensorType &formal = body.types[body.inputs[1 + i]],
                     &initial = a.in[attrs.first_carry() + i];
    Dims dims = attrs.last_dims.empty() ? Dims{} : attrs.last_dims[i];
    for (int axis = static_cast<int>(dims.size()); axis < formal.rank(); ++axis) {
      const Dim& dim = formal.dims()[axis];
      dims.push_back(dim.is_symbol() && !dim.is_named() ? Dim::unknown()
                     : last.has(dim)                    ? last.of(dim)
                                                        : initial.dims()[axis]);
    }
    a.out.push_back(initial.with(dims));
  }
  const Dim fresh = attrs.makes_dim ? new_symbol(attrs) : Dim(0);
  ElementDims element_dims(last, env);
  for (int i = 0; i < attrs.stacks; ++i) {
    const TensorType& term = body.types[body.outputs[attrs.carries + i]];
    if (attrs.is_list(i)) {  // dims of elements may be known to their iteration only
      const TensorType element = element_of_stack(attrs, static_cast<std::size_t>(i), term);
      a.out.push_back(element_dims(element).as_list());
      continue;
    }
    Dims dims{attrs.makes_dim ? fresh : attrs.stack_dims[i]};
    const TensorType seen = outside(remove_chunk_dim(attrs, term));
    dims.insert(dims.end(), seen.dims().begin(), seen.dims().end());
    a.out.push_back(seen.with(dims));
  }
  for (int i = 0; i < attrs.sums; ++i)
    a.out.push_back(outside(body.types[body.outputs[attrs.carries + attrs.stacks + i]]));
  a.out.push_back(TensorType(i32));
  if (attrs.makes_lengths()) a.out.push_back(TensorType(i32, attrs.entry_dims));
  if (attrs.makes_dim) a.out.push_back(token_type(fresh));
}

void cond_type(TypeArgs& a) {
  const CondAttrs& attrs = a.attr<CondAttrs>();
  DimEnv env = attrs.on_true.env();
  const Graph& graph = *attrs.on_true.graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    env.bind(graph.types[graph.inputs[i]], a.in[1 + attrs.true_captures[i]]);
  const Graph& other = *attrs.on_false.graph;
  JoinedDims joined(env);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    a.out.push_back(joined.of(graph.types[graph.outputs[i]], other.types[other.outputs[i]]));
}

}  // namespace

const Op loop_op{
    .name = "loop",
    .type = loop_type,
    .kernel = run_loop,
    .vjp = loop_vjp,
    .reads = {.inputs = kAll, .outputs = kAll},
    .samples = [] { return OpSamples{}; },  // tests/frontend tests loops in every mode
    .kernel_decides_types = true,
};

const Op cond_op{
    .name = "cond",
    .type = cond_type,
    .kernel = run_cond,
    .vjp = cond_vjp,
    .reads = {.inputs = kAll},
    .samples = [] { return OpSamples{}; },
    .kernel_decides_types = true,
};

ValueId append_steps(Graph& body) {
  const RecordedGraph zero =
      record_graph("steps", {}, [](const Tensors&) { return Tensors{zeros({2}, i64)}; });
  const ValueId steps = body.add_value(TensorType(i64, {2}));
  const OpRecord& record = zero.graph->records[0];
  body.append(record, record.attrs, {}, {&steps, 1});
  return steps;
}

const Op recompute_op{
    .name = "recompute",
    .type =
        [](TypeArgs& a) {
          const RecomputeAttrs& attrs = a.attr<RecomputeAttrs>();
          const LoopAttrs& loop = attrs.saving();
          TypeList all;
          TypeArgs rule{loop_op, attrs.loop.get(), a.in.first(attrs.loop_inputs(a.in.size())), all};
          loop_op.type(rule);
          for (int j = attrs.first_saved; j < loop.stacks; ++j)
            a.out.push_back(all.span()[loop.first_stack() + static_cast<std::size_t>(j)]);
        },
    .kernel = run_recompute,
    .storage = OpStorage::any,
    .vjp = recompute_vjp,
    .reads = {.inputs = kAll},
    .samples = [] { return OpSamples{}; },
};

bool has_effects(const OpRecord& record) {
  if (record.op == &loop_op) {
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    return has_effects(*attrs.body.graph) || (attrs.cond && has_effects(*attrs.cond.graph));
  }
  if (record.op == &cond_op) {
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_effects(*attrs.on_true.graph) || has_effects(*attrs.on_false.graph);
  }
  if (record.op == &checkpointed_op)
    return has_effects(*get<CheckpointedAttrs>(record.attrs.get()).body.graph);
  return record.op->has_effect;
}

namespace {
/// True if an output of the record is a loop's stack of one of these kinds.
bool is_stack_of_kind(const OpRecord& record, std::size_t output, int kinds) {
  if (record.op != &loop_op) return false;
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  return output >= attrs.first_stack() && output < attrs.first_sum() &&
         (attrs.stack_kinds[output - attrs.first_stack()] & kinds);
}
}  // namespace
bool is_spilled_output(const OpRecord& record, std::size_t output) {
  return is_stack_of_kind(record, output, LoopAttrs::kSpilled);
}
bool is_checkpoint_output(const OpRecord& record, std::size_t output) {
  return is_stack_of_kind(record, output, LoopAttrs::kCheckpoint | LoopAttrs::kOfCheckpoints);
}

bool has_effects(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(),
                     [](const OpRecord& r) { return has_effects(r); });
}

bool has_loops(const Graph& graph) {
  return std::any_of(graph.records.begin(), graph.records.end(), [](const OpRecord& record) {
    if (record.op != &cond_op) return record.op == &loop_op;
    const auto& attrs = get<CondAttrs>(record.attrs.get());
    return has_loops(*attrs.on_true.graph) || has_loops(*attrs.on_false.graph);
  });
}

TensorType slice_type(const TensorType& slices) {
  if (slices.is_list()) return slices.element();
  return slices.with(Dims(slices.dims().begin() + 1, slices.dims().end()));
}

TensorType chunk_type(const TensorType& slices, const Dim& chunk) {
  if (slices.is_list()) return slices;
  Dims dims = slices.dims();
  dims[0] = chunk;
  return slices.with(dims);
}

std::optional<std::size_t> first_dense_slice(const LoopAttrs& attrs,
                                             std::span<const TensorType> inputs) {
  const auto slices = static_cast<std::size_t>(attrs.slices);
  for (std::size_t i = 0; i < slices; ++i)
    if (!inputs[attrs.first_slice() + i].is_list()) return i;
  return std::nullopt;
}

LoopAttrs make_chunk_loop(const LoopAttrs& attrs, const Dim& chunk) {
  LoopAttrs result = attrs;
  result.within_chunk = true;
  result.has_bound = false;
  std::fill(result.stack_dims.begin(), result.stack_dims.end(), chunk);
  return result;
}

TensorType remove_chunk_dim(const LoopAttrs& attrs, const TensorType& term) {
  return attrs.over_chunks ? slice_type(term) : term;
}

TensorType element_of_stack(const LoopAttrs& attrs, std::size_t stack, const TensorType& term) {
  return attrs.is_checkpoint(stack) ? term : remove_chunk_dim(attrs, term);
}

namespace {
/// Calls fn for each dim from which a dim is finally computed.
template <class Fn>
void each_atom(const Dim& dim, Fn&& fn) {
  const DimExpression* expression = expression_of(dim);
  if (!expression) return fn(dim);
  for (const Dim& of : expression->operands) each_atom(of, fn);
}
}  // namespace

bool makes_dim(const Graph& graph, const Dim& dim) {
  bool result = false;
  for_each_symbol(dim, [&](const Dim& symbol) {
    if (symbol.has_size() || contains(graph.schedule().free_symbols, symbol)) return;
    bool is_given = false;
    for (const ValueId v : graph.inputs)
      for_each_bound(graph.types[v], [&](const Dim& given) {
        is_given = is_given || given.node() == symbol.node();
      });
    result = result || !is_given;
  });
  return result;
}

Dims changing_dims(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  Dims result;
  std::unordered_set<const DimNode*> found;
  for (int i = 0; i < attrs.carries; ++i) {
    const Dims &in = body.types[body.inputs[1 + i]].dims(),
               &out = body.types[body.outputs[i]].dims();
    for (std::size_t axis = 0; axis < in.size() && axis < out.size(); ++axis)
      if (in[axis].is_symbol() && in[axis].is_named() && !(in[axis] == out[axis]))
        each_atom(in[axis], [&](const Dim& dim) {
          if (dim.is_symbol() && found.insert(dim.node()).second) result.push_back(dim);
        });
  }
  // The lengths of one dim may run over another, which then comes first.
  std::stable_sort(result.begin(), result.end(), [](const Dim& a, const Dim& b) {
    return a.length_dims().size() < b.length_dims().size();
  });
  return result;
}

std::vector<std::uint8_t> carries_with_changing_dims(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  std::unordered_set<const DimNode*> changing;
  for (const Dim& dim : changing_dims(attrs)) changing.insert(dim.node());
  std::vector<std::uint8_t> result(static_cast<std::size_t>(attrs.carries));
  for (std::size_t i = 0; i < result.size(); ++i)
    for_each_symbol(body.types[body.inputs[1 + i]],
                    [&](const Dim& dim) { result[i] |= changing.count(dim.node()) != 0; });
  return result;
}

DimEnv body_env(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  DimEnv env;
  for (int i = 0; i < attrs.carries; ++i)
    env.bind(body.types[body.inputs[1 + i]], inputs[attrs.first_carry() + i]);
  for (int i = 0; i < attrs.slices; ++i) {
    const TensorType slice = slice_type(inputs[attrs.first_slice() + i]);
    const TensorType formal =
        remove_chunk_dim(attrs, body.types[body.inputs[1 + attrs.carries + i]]);
    if (slice.rank() == formal.rank()) env.bind(formal, slice);
  }
  // Captures are bound last: the lengths of an outer dim may run over dims of arguments, under the
  // names that these have outside the trace.
  for (std::size_t i = 0; i < attrs.body_captures.size(); ++i)
    env.bind(body.types[body.inputs[body.formal_count + i]],
             inputs[attrs.first_capture() + attrs.body_captures[i]]);
  for (const auto& [symbol, actual] : attrs.body.bindings) env.bind(symbol, actual);
  return env;
}

DimEnv cond_env(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& cond = *attrs.cond.graph;
  DimEnv env = attrs.cond.env();
  for (int i = 0; i < attrs.carries; ++i)
    env.bind(cond.types[cond.inputs[1 + i]], inputs[attrs.first_carry() + i]);
  for (std::size_t i = 0; i < attrs.cond_captures.size(); ++i)
    env.bind(cond.types[cond.inputs[cond.formal_count + i]],
             inputs[attrs.first_capture() + attrs.cond_captures[i]]);
  return env;
}

std::vector<int> CaptureList::add(const Tensors& captured) {
  std::vector<int> places;
  std::unordered_map<const TensorBlock*, int> known;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    known.emplace(tensors_[i].block(), static_cast<int>(i));
  for (const Tensor& tensor : captured) {
    const auto [place, is_new] = known.emplace(tensor.block(), static_cast<int>(tensors_.size()));
    if (is_new) tensors_.push_back(tensor);
    places.push_back(place->second);
  }
  return places;
}

namespace {
const Op* const kControlOps[] = {&loop_op, &cond_op, &recompute_op, &fused_op};
}
std::span<const Op* const> control_ops() { return kControlOps; }

std::span<const Op* const> all_ops() {
  static const std::vector<const Op*>& ops = []() -> const std::vector<const Op*>& {
    auto* list = new std::vector<const Op*>;
    for (auto family :
         {elementwise_ops, select_ops,     reduction_ops,  product_ops,    creation_ops,
          shape_ops,       join_ops,       index_ops,      dim_ops,        random_ops,
          identity_ops,    list_ops,       entry_ops,      control_ops,    custom_ops,
          cumulative_ops,  scatter_ops,    sort_ops,       draw_ops,       pack_ops,
          label_ops,       list_part_ops,  whole_list_ops, packed_ops,     checkpointed_ops,
          row_ops,         row_number_ops, sparse_ops,     sum_blocks_ops, zero_unless_ops})
      for (const Op* op : family()) list->push_back(op);
    return *list;
  }();
  return ops;
}

}  // namespace reel
