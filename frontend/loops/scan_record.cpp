// The traced form of scan: records cond and body once each, and makes one record of the loop.
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/loop/capture_list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/ops/loop/iteration_error.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/printed_entries.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/frontend/loops/loop_policy.h"
#include "reel/frontend/loops/scan_leaves.h"
#include "reel/frontend/loops/state/growing_dim_state.h"
#include "reel/frontend/loops/varying_ys.h"
#include "reel/frontend/tree/tree.h"

namespace reel {
namespace {

struct RecordedBody {
  Ref<Graph> graph;
  Tensors captured;
  TreeLeaves ys;      // has the types of the body's promises
  DimEnv dims;        // dims of the body, and the same dims outside
  VaryingYs varying;  // leaves of ys that the graph returns as body_terms()
};

/// A scan while it is being recorded.
///
/// If finished entries of a state with changing Dims need special values, or if the body prints,
/// the body handles finished entries itself. It then carries the lengths of the entries, and the
/// entries that cond has not finished.
class ScanRecording {
 public:
  ScanRecording(const ScanSpec& spec, const ScanPlan& plan, const StateRule& rule)
      : spec_(spec), plan_(plan), rule_(rule), formal_(rule) {}

  RecordedBody record_body() {
    for (;;)
      if (std::optional<RecordedBody> body = try_body()) return *std::move(body);
  }
  RecordedBody record_cond();
  const FormalState& formal() const { return formal_; }

  /// Returns the initial values of the extra carries, which follow the state's carries.
  Tensors hidden_carries();
  /// Adds the carries and slices of the loop.
  void add_inputs(LoopAttrs& attrs) const;

 private:
  std::optional<RecordedBody> try_body();
  GrowingDimState frozen() const { return {rule_, formal_.changing(), plan_.entry_dims}; }
  bool keeps_entries() const {
    return !plan_.entry_dims.empty() && (prints_ || !frozen().is_empty());
  }
  Tensor eval_condition(const TreeLeaves& state) const {
    return checked_entry_condition(spec_, plan_,
                                   in_iteration(0, plan_.what, [&] { return spec_.cond(state); }));
  }
  void cut_gradients(TreeLeaves& state, const Tensor& position) const;
  bool learns_varying(const TreeLeaves& ys, const Graph& graph);

  const ScanSpec& spec_;
  const ScanPlan& plan_;
  const StateRule& rule_;
  FormalState formal_;
  RandomScope random_;
  bool prints_ = false;  ///< true: the body prints, and needs to know the running entries
  VaryingYs varying_;    ///< ys with dims of another size in every iteration
};

std::optional<RecordedBody> ScanRecording::try_body() {
  GraphBuilder builder("body", body_of(plan_.what));
  builder.set_entry_dims(plan_.entry_dims);
  ModeScope scope(builder.scope());
  const Tensor position = builder.add_input(TensorType(i64));
  random_.begin(position);
  const TreeLeaves before = formal_.add_inputs(builder);
  const GrowingDimState frozen = this->frozen();
  Tensor lengths, active, running;
  if (keeps_entries()) {
    if (plan_.lengths.is_defined()) lengths = builder.add_input(plan_.lengths.type());
    if (spec_.cond) active = builder.add_input(TensorType(boolean, plan_.entry_dims));
    if (lengths.is_defined()) running = less(cast(position, lengths.dtype()), lengths);
    if (active.is_defined()) running = running.is_defined() ? logical_and(running, active) : active;
  }
  TreeLeaves x = spec_.xs;
  std::size_t next = 0;
  for (TreeLeaf& leaf : x) {
    if (leaf.kind != TreeLeaf::Kind::tensor) continue;
    leaf.tensor = builder.add_input(slice_type(plan_.xs[next++].type()));
    if (running.is_defined() && frozen.goes_on())
      leaf.tensor = GrowingDimState::own_frame(leaf.tensor, running);
  }
  TreeLeaves seen = running.is_defined() ? frozen.seen(before, running) : before;
  if (spec_.truncate) cut_gradients(seen, position);
  std::optional<PrintedEntries> printed;
  if (!plan_.entry_dims.empty()) printed.emplace(running, position);
  const ScanStep step = in_iteration(0, plan_.what, [&] { return spec_.body(x, seen); });
  const bool has_to_know = printed && printed->is_asked() && !running.is_defined();
  printed.reset();
  if (has_to_know) {
    prints_ = true;
    return std::nullopt;
  }
  RecordedBody result;
  TreeLeaves state = rule_.checked(step.state);
  result.ys = checked_ys(spec_, plan_, step.y, nullptr);
  if (formal_.learns(state)) return std::nullopt;
  state = formal_.with_fresh_dims(std::move(state), builder);
  if (running.is_defined()) state = frozen.kept(std::move(state), before, running);
  Tensors outputs = formal_.carries(state);
  if (lengths.is_defined()) outputs.push_back(lengths);
  if (active.is_defined()) {
    random_.begin(position + 1, 1);
    outputs.push_back(logical_and(active, eval_condition(state)));
  }
  for (std::size_t i = 0; i < result.ys.size(); ++i) {
    if (result.ys[i].kind != TreeLeaf::Kind::tensor) continue;
    const Tensor& y = result.ys[i].tensor;
    const VaryingY* const varying = find_varying(varying_, i);
    const Tensors terms = varying ? body_terms(y, *varying, plan_.entry_dims) : Tensors{y};
    outputs.insert(outputs.end(), terms.begin(), terms.end());
  }
  result.graph = finish_part(builder, outputs);
  result.captured = builder.captured();
  result.dims = builder.dims_outside();
  if (learns_varying(result.ys, *result.graph)) return std::nullopt;
  result.varying = varying_;
  return result;
}

/// Notes the ys with dims that an iteration makes. Returns true if some of them are new: the
/// recording must then be discarded and made again.
bool ScanRecording::learns_varying(const TreeLeaves& ys, const Graph& graph) {
  DimChanges formal;
  for (const Dim& dim : formal_.formal()) formal.add(dim, Dim("any", 0));
  bool is_new = false;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].kind != TreeLeaf::Kind::tensor) continue;
    const TensorType& y = ys[i].tensor.type();
    const Dims& dims = ys[i].tensor.dims();  // throws for an unknown rank
    for (int axis = 0; axis < y.rank(); ++axis) {
      const Dim& dim = dims[static_cast<std::size_t>(axis)];
      if (!dim.is_named() || !(formal.affects(dim) || makes_dim(graph, dim))) continue;
      if (spec_.return_tensor_arrays)
        throw ShapeError(str(plan_.what, ": y is ", y, ", whose dim ", dim,
                             " has another size in every iteration, but elements of a TensorArray "
                             "in a trace have one type; without return_tensor_arrays, ys are "
                             "stacked along a ragged dim"));
      is_new = add_varying(varying_, i, axis) || is_new;
    }
    if (const VaryingY* const varying = find_varying(varying_, i))
      check_varying(plan_, y, *varying);
  }
  return is_new;
}

/// Returns the stacks of a loop. The body returned some of them as body_terms().
std::vector<LoopStack> stacks_of(const RecordedBody& body, const LoopStack& like) {
  std::vector<LoopStack> result;
  for (std::size_t i = 0; i < body.ys.size(); ++i) {
    if (body.ys[i].kind != TreeLeaf::Kind::tensor) continue;
    result.push_back(like);
    const VaryingY* const varying = find_varying(body.varying, i);
    if (!varying) continue;
    result.back().is_list = true;
    result.resize(result.size() + term_count(body.ys[i].tensor.type(), *varying) - 1, like);
  }
  return result;
}

/// Returns the ys of a loop with these stacks.
TreeLeaves ys_of(const RecordedBody& body, std::span<const Tensor> stacks, const Dims& entry_dims,
                 const Dim& time) {
  TreeLeaves result = body.ys;
  for (std::size_t i = 0, next = 0; i < result.size(); ++i) {
    if (result[i].kind != TreeLeaf::Kind::tensor) continue;
    Tensor& y = result[i].tensor;
    const VaryingY* const varying = find_varying(body.varying, i);
    const std::size_t count = varying ? term_count(y.type(), *varying) : 1;
    const auto terms = stacks.subspan(next, count);
    y = varying ? stack_terms(Tensors(terms.begin(), terms.end()), y.type(), *varying, entry_dims,
                              body.dims, time)
                : terms[0];
    next += count;
  }
  follow_stacks(body.ys, result);
  return result;
}

/// Returns a list that is a constant to gradients if `cut` holds. Binds cond_op directly: the
/// public cond would draw a stream of random numbers, which eager mode does not do.
Tensor cut_list(const Tensor& cut, const Tensor& list) {
  CaptureList captures;
  const auto record = [&](const char* name, auto&& of_list, std::vector<int>& places) {
    GraphBuilder builder(name, name);
    ModeScope scope(builder.scope());
    const SubGraph graph = make_sub_graph(finish_part(builder, {of_list()}));
    places = captures.add(builder.captured());
    return graph;
  };
  CondAttrs attrs;
  attrs.on_true = record(
      "cut", [&] { return stop_gradient(list); }, attrs.true_captures);
  attrs.on_false = record(
      "as it is", [&] { return list; }, attrs.false_captures);
  Tensors inputs{cut};
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  return bind_all(cond_op, inputs, make_attrs(std::move(attrs)))[0];
}

/// Makes the state a constant to gradients at the first iteration of a segment.
void ScanRecording::cut_gradients(TreeLeaves& state, const Tensor& position) const {
  const Tensor begins = truncates_at(spec_, plan_, position);
  for (TreeLeaf& leaf : state) {
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined() ||
        !is_float(leaf.tensor.dtype()))
      continue;
    leaf.tensor = leaf.tensor.type().is_list()
                      ? cut_list(begins, leaf.tensor)
                      : where(begins, stop_gradient(leaf.tensor), leaf.tensor);
  }
}

/// Records the condition, which returns the running entries: a carry that the body computes, or
/// cond's result.
RecordedBody ScanRecording::record_cond() {
  GraphBuilder builder("cond", condition_of(plan_.what));
  ModeScope scope(builder.scope());
  random_.begin(builder.add_input(TensorType(i64)), 1);
  const TreeLeaves state = formal_.add_inputs(builder);
  RecordedBody result;
  if (keeps_entries()) {
    if (plan_.lengths.is_defined()) builder.add_input(plan_.lengths.type());
    result.graph = finish_part(builder, {builder.add_input(TensorType(boolean, plan_.entry_dims))});
  } else {
    result.graph = finish_part(builder, {eval_condition(state)});
  }
  result.captured = builder.captured();
  return result;
}

Tensors ScanRecording::hidden_carries() {
  Tensors result;
  if (!keeps_entries()) return result;
  if (plan_.lengths.is_defined()) result.push_back(plan_.lengths);
  if (spec_.cond) {
    random_.begin(0, 1);
    result.push_back(spec_.cond_before_body ? eval_condition(rule_.initial())
                                            : ones(plan_.entry_dims, boolean));
  }
  return result;
}

void ScanRecording::add_inputs(LoopAttrs& attrs) const {
  const GrowingDimState frozen = this->frozen();
  const auto fill = [&](bool is_kept_valid) {
    return keeps_entries() && is_kept_valid ? FinishedFill::as_is : FinishedFill::running;
  };
  for (std::size_t i = 0; i < rule_.initial().size(); ++i)
    if (rule_.initial()[i].kind == TreeLeaf::Kind::tensor)
      attrs.carries.push_back({.fill = fill(frozen.follows(i))});
  attrs.carries.resize(attrs.carries.size() + formal_.changing().size());
  if (keeps_entries())
    attrs.carries.resize(
        attrs.carries.size() + plan_.lengths.is_defined() + static_cast<bool>(spec_.cond),
        LoopCarry{.fill = FinishedFill::as_is});
  attrs.slices.resize(plan_.xs.size(), LoopSlice{.fill = fill(frozen.goes_on())});
}

}  // namespace

TreeLeaves abstract_ys(const ScanSpec& spec, const ScanPlan& plan, const StateRule& rule,
                       VaryingYs* varying) {
  RecordedBody body = ScanRecording(spec, plan, rule).record_body();
  DimEnv outside = DimEnv::renaming(body.dims);
  const Ref<const Recording> recording(new Recording(body_of(plan.what)));
  for (TreeLeaf& leaf : body.ys)
    if (leaf.kind == TreeLeaf::Kind::tensor)
      leaf.tensor =
          Tensor(allocate_promise(outside.resolve(leaf.tensor.type()), 0, 0, recording, nullptr));
  if (varying) *varying = std::move(body.varying);
  return std::move(body.ys);
}

ScanResult record_scan(const ScanSpec& spec, const ScanPlan& plan) {
  const StateRule rule(plan.what, spec.initial, spec.state_paths, spec.returned_paths,
                       spec.shape_invariants, StateRule::Asks::nothing);
  ScanRecording recording(spec, plan, rule);
  LoopAttrs attrs;
  attrs.name = plan.what;
  attrs.trips.is_scan = true;
  attrs.trips.is_reverse = spec.is_reverse;
  attrs.trips.cond_before_body = spec.cond_before_body;
  attrs.policy = checkpoint_plan(spec.checkpoint, spec.swap_memory);
  attrs.entries.dims = plan.entry_dims;
  if (!plan.entry_dims.empty()) attrs.entries.kept_dims = dims_of_arrays(spec.initial);
  CaptureList captures;
  RecordedBody body = recording.record_body();
  if (spec.cond) {
    const RecordedBody cond = recording.record_cond();
    attrs.cond_captures = captures.add(cond.captured);
    attrs.cond = make_sub_graph(cond.graph);
  }
  const auto kept_lengths =
      capture_lengths(*body.graph, body.captured, body.dims, attrs.entries.dims);
  attrs.body_captures = captures.add(body.captured);
  attrs.body = make_sub_graph(body.graph, body.dims);

  Tensors initial = initial_carries(recording.formal(), spec.initial);
  for (const Tensor& hidden : recording.hidden_carries()) initial.push_back(hidden);
  recording.add_inputs(attrs);
  attrs.captures.resize(captures.tensors().size());
  for (const std::size_t i : kept_lengths)
    attrs.captures[static_cast<std::size_t>(attrs.body_captures[i])].fill = FinishedFill::as_is;
  attrs.stacks = stacks_of(
      body, {.is_list = spec.return_tensor_arrays, .dim = plan.makes_dim ? Dim() : *plan.dim});
  attrs.trips.makes_dim = plan.makes_dim;
  attrs.trips.new_dim = name_of_made_dim(plan, body.ys);
  attrs.trips.is_full = !plan.makes_dim && !spec.cond && !spec.max_seq_len;
  attrs.trips.has_bound = plan.bound.is_defined();
  attrs.trips.has_lengths = plan.lengths.is_defined();
  Tensors inputs;
  if (plan.bound.is_defined()) inputs.push_back(plan.bound);
  if (plan.lengths.is_defined()) inputs.push_back(plan.lengths);
  inputs.insert(inputs.end(), initial.begin(), initial.end());
  inputs.insert(inputs.end(), plan.xs.begin(), plan.xs.end());
  inputs.insert(inputs.end(), captures.tensors().begin(), captures.tensors().end());
  const AttrsRef loop = make_attrs(std::move(attrs));
  const Tensors outputs = bind_all(loop_op, inputs, loop);
  const auto results = results_of(get<LoopAttrs>(loop.get()), outputs);

  ScanResult result;
  result.state = recording.formal().result(outputs);
  result.dim = plan.makes_dim ? results.token->dims()[1] : *plan.dim;
  result.ys = ys_of(body, results.stacks, plan.entry_dims, result.dim);
  return result;
}

}  // namespace reel
