// while_loop on leaves: a C++ loop in eager mode, one record in a trace.
#include <algorithm>
#include <exception>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/base/thread_store.h"
#include "reel/core/graph/passes/merge_equal.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/control/identity.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/iteration_error.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/core/types/block.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/frontend/loops/loop_policy.h"
#include "reel/frontend/loops/loop_recording.h"
#include "reel/frontend/loops/stack_pushed_arrays.h"
#include "reel/frontend/loops/trace_subcomputation.h"
#include "reel/frontend/tree/tree.h"

namespace reel {

TreeLeaves detail::flatten_returned(const TreeRef& state, const TreeLeaves& like,
                                    std::vector<std::string>& paths) {
  TreeLeaves leaves = flatten_tree(state);
  if (!same_structure(leaves, like)) paths = leaf_paths_of(state, "state");
  return leaves;
}

Tensor IterationCount::tensor(const std::string& what) const {
  if (is_number()) return scalar(number_, i64);
  if (!tensor_->is_defined())
    throw ArgumentError(str(what, " is an empty Tensor; give a number, or leave it out"));
  if (!is_integer(tensor_->dtype()))
    throw DTypeError(str(what, " must be an integer, got ", tensor_->type()));
  return *tensor_;
}

Ref<Graph> finish_part(GraphBuilder& builder, const Tensors& outputs) {
  const Ref<Graph> graph = builder.finish(outputs);
  const auto is_asked_again = [](const OpRecord& record) {
    return record.op == &loop_op && get<LoopAttrs>(record.attrs.get()).debug.origin;
  };
  const auto& records = graph->records;
  return std::any_of(records.begin(), records.end(), is_asked_again) ? merge_equal(*graph) : graph;
}

TreeLeaves as_own_values(TreeLeaves state) {
  if (thread_mode.tape)
    for (TreeLeaf& leaf : state)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = as_state(leaf.tensor);
  return state;
}

namespace {

bool is_differentiable(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
         is_float(leaf.tensor.dtype());
}

/// True if the tensor's block was made on this thread after `begin`.
bool is_since(const Tensor& tensor, std::uint64_t begin) {
  return is_id_since(tensor.block()->id, begin);
}

}  // namespace

TreeLeaves own_terms(TreeLeaves terms, std::uint64_t begin) {
  if (thread_mode.tape)
    for (TreeLeaf& leaf : terms)
      if (is_differentiable(leaf) && !is_since(leaf.tensor, begin))
        leaf.tensor = as_state(leaf.tensor);
  return terms;
}

TreeLeaves own_state(TreeLeaves state, std::uint64_t begin) {
  if (!thread_mode.tape) return state;
  using Ids = std::vector<std::uint64_t>;
  Ids own;  // used at a thread's end, when the thread's store is gone
  Ids* const kept = ThreadStore<Ids, StateRule>::get();
  Ids& ids = kept ? *kept : own;
  ids.clear();
  for (const TreeLeaf& leaf : state)
    if (is_differentiable(leaf)) ids.push_back(leaf.tensor.block()->id);
  std::sort(ids.begin(), ids.end());
  const auto twice = [&](const Tensor& tensor) {
    const auto [first, last] = std::equal_range(ids.begin(), ids.end(), tensor.block()->id);
    return last - first > 1;
  };
  for (TreeLeaf& leaf : state)
    if (is_differentiable(leaf) && (!is_since(leaf.tensor, begin) || twice(leaf.tensor)))
      leaf.tensor = as_state(leaf.tensor);
  return state;
}

namespace {

std::string title(const WhileSpec& spec) { return str("while_loop \"", spec.name, "\""); }

TreeLeaves run_eagerly(const WhileSpec& spec, const StateRule& rule,
                       const std::optional<Tensor>& bound) {
  const std::int64_t limit = !bound ? INT64_MAX : cast(*bound, i64).item<std::int64_t>();
  TreeLeaves state = as_own_values(rule.initial());
  {
    MarkedLoop marks(rule.what());
    RandomScope random;
    for (std::int64_t k = 0; k < limit; ++k) {
      random.begin(k, 1);
      const LoopCondition condition =
          in_iteration(k, rule.what(), [&] { return spec.cond(state); });
      const auto holds = [&] {
        return checked_condition(rule.what(), condition.tensor).item<bool>();
      };
      if (!(condition.fixed ? *condition.fixed : after_iteration(k, rule.what(), holds))) break;
      marks.begin_iteration(k);
      random.begin(k);
      const std::uint64_t begin = next_block_id();
      TreeLeaves next = in_iteration(k, rule.what(), [&] { return spec.body(std::move(state)); });
      next = after_iteration(k, rule.what(), [&] { return rule.checked(std::move(next)); });
      state = own_state(std::move(next), begin);
    }
  }
  return as_own_values(std::move(state));
}

struct Recorded {
  Ref<Graph> graph;
  Tensors captured;
};

/// Returns nullopt if cond is a C++ bool, and sets `fixed` to it.
std::optional<Recorded> record_cond(const WhileSpec& spec, const StateRule& rule,
                                    const FormalState& formal, RandomScope& random,
                                    std::optional<bool>& fixed) {
  GraphBuilder builder("cond", condition_of(rule.what()));
  ModeScope scope(builder.scope());
  random.begin(builder.add_input(TensorType(i64)), 1);
  const TreeLeaves state = formal.add_inputs(builder);
  const LoopCondition condition = in_iteration(0, rule.what(), [&] { return spec.cond(state); });
  fixed = condition.fixed;
  if (fixed) return std::nullopt;
  Ref<Graph> graph = finish_part(builder, {checked_condition(rule.what(), condition.tensor)});
  return Recorded{std::move(graph), builder.captured()};
}

/// Returns nullopt if Dims of the state changed that were assumed to stay.
std::optional<Recorded> record_body(const WhileSpec& spec, const StateRule& rule,
                                    FormalState& formal, RandomScope& random) {
  GraphBuilder builder("body", body_of(rule.what()));
  ModeScope scope(builder.scope());
  random.begin(builder.add_input(TensorType(i64)));
  const TreeLeaves state = formal.add_inputs(builder);
  const TreeLeaves returned =
      rule.checked(in_iteration(0, rule.what(), [&] { return spec.body(state); }));
  if (formal.learns(returned)) return std::nullopt;
  Ref<Graph> graph =
      finish_part(builder, formal.carries(formal.with_fresh_dims(returned, builder)));
  return Recorded{std::move(graph), builder.captured()};
}

/// The condition and the body of a loop.
struct RecordedParts {
  std::optional<Recorded> cond, body;
  std::optional<bool> fixed;  ///< the condition, if it is a C++ bool; if false, there is no body
};

/// Records them until the body changes no Dim and no rank that was assumed to stay.
RecordedParts record_parts(const WhileSpec& spec, const StateRule& rule, FormalState& formal,
                           RandomScope& random) {
  RecordedParts parts;
  while (!parts.body) {
    parts.cond = record_cond(spec, rule, formal, random, parts.fixed);
    if (parts.fixed && !*parts.fixed) break;
    parts.body = record_body(spec, rule, formal, random);
  }
  return parts;
}

/// Records a loop. Its body may fail if ranks are known, as a cond does with branches of different
/// ranks: the loop is then recorded with unknown ranks. If that fails too, throws the first error.
RecordedParts record_with_any_ranks(const WhileSpec& spec, const StateRule& rule,
                                    FormalState& formal, RandomScope& random) try {
  return record_parts(spec, rule, formal, random);
} catch (const ShapeError&) {
  if (!formal.forget_ranks()) throw;
  const std::exception_ptr first = std::current_exception();
  try {
    return record_parts(spec, rule, formal, random);
  } catch (const Error&) {
    std::rethrow_exception(first);
  }
}

TreeLeaves record_loop(const WhileSpec& spec, const StateRule& rule,
                       const std::optional<Tensor>& bound) {
  RandomScope random;
  FormalState formal(rule);
  auto [cond, body, fixed] = record_with_any_ranks(spec, rule, formal, random);
  if (!body) return rule.unchanged();
  if (fixed && !bound)
    throw TraceError(str(rule.what(), ": cond is always true, so the traced loop would never end; ",
                         "return a tensor from cond, or give maximum_iterations"));
  const Tensors given = initial_carries(formal, rule.initial());
  Ref<Graph> asks = cond ? cond->graph : Ref<Graph>();
  const std::vector<int> pushed =
      take_out_pushed_arrays(body->graph, asks, static_cast<int>(given.size()));
  const auto is_pushed = [&](std::size_t i) {
    return std::find(pushed.begin(), pushed.end(), static_cast<int>(i)) != pushed.end();
  };
  LoopAttrs attrs;
  attrs.name = rule.what();
  attrs.debug.parallel_iterations = spec.parallel_iterations;
  attrs.policy = checkpoint_plan(spec.checkpoint, spec.swap_memory);
  CaptureList captures;
  attrs.body_captures = captures.add(body->captured);
  attrs.body = make_sub_graph(body->graph);
  if (cond) {
    attrs.cond_captures = captures.add(cond->captured);
    attrs.cond = make_sub_graph(asks);
  }
  Tensors initial;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!is_pushed(i)) initial.push_back(given[i]);
  attrs.carries.resize(initial.size());
  attrs.stacks.assign(pushed.size(), LoopStack{.is_list = true, .dim = Dim(0)});
  attrs.captures.resize(captures.tensors().size());
  attrs.trips.has_bound = bound.has_value();
  Tensors inputs;
  if (bound) inputs.push_back(*bound);
  inputs.insert(inputs.end(), initial.begin(), initial.end());
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  const AttrsRef loop = make_attrs(std::move(attrs));
  const Tensors outputs = bind_all(loop_op, inputs, loop);
  const auto results = results_of(get<LoopAttrs>(loop.get()), outputs);
  auto carry = results.carries.begin(), stack = results.stacks.begin();
  Tensors last;
  for (std::size_t i = 0; i < given.size(); ++i)
    last.push_back(is_pushed(i) ? list_extend(given[i], *stack++, list_size(given[i])) : *carry++);
  return formal.result(last);
}

}  // namespace

TreeLeaves while_loop_leaves(const WhileSpec& spec) try {
  if (spec.parallel_iterations < 1)
    throw ArgumentError(str(title(spec), ": parallel_iterations must be at least 1, got ",
                            spec.parallel_iterations));
  const StateRule rule(title(spec), spec.initial, spec.paths, spec.returned_paths,
                       spec.shape_invariants, StateRule::Asks::shape_invariants);
  if (tensors_of(spec.initial).empty())
    throw StructureError(
        str(title(spec), ": the state is empty; a loop needs at least one tensor to carry"));
  std::optional<Tensor> bound;
  if (spec.maximum_iterations) {
    bound = spec.maximum_iterations->tensor(title(spec) + ": maximum_iterations");
    if (bound->rank())
      throw ArgumentError(
          str(title(spec), ": maximum_iterations must be a scalar, got ", bound->type()));
  }
  // Without back_prop no tape sees the loop, so its results are constants to gradients.
  ModeScope scope(
      {thread_mode.builder, spec.back_prop ? thread_mode.tape : nullptr, thread_mode.entries});
  if (has_policy(spec.checkpoint, spec.swap_memory) && is_recorded_here())
    return run_recorded(title(spec), spec.initial, [&](const TreeLeaves& initial) {
      WhileSpec inside = spec;
      inside.initial = initial;
      return while_loop_leaves(inside);
    });
  if (!is_tracing()) return run_eagerly(spec, rule, bound);
  TreeLeaves result = record_loop(spec, rule, bound);
  if (!spec.back_prop)  // the graph may be reversed later: it must know as well
    for (TreeLeaf& leaf : result)
      if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = stop_gradient(leaf.tensor);
  return result;
} catch (const std::bad_alloc&) {
  throw_no_memory_in("while_loop");
}

}  // namespace reel
