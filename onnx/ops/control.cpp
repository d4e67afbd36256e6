// If and Loop.
#include <algorithm>
#include <array>
#include <exception>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/checks.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/shape.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/loop_leaves.h"
#include "reel/onnx/ops/loop_state.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/plain_dims.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_graph.h"

namespace reel::imported {
namespace {

bool is_true(const Tensor& x) {
  const ModeScope aside({});
  return scalar_of(x).item<bool>();
}
PathsFn no_paths() {
  return [] { return std::vector<std::string>(); };
}
PathsFn paths_of(std::size_t count, const std::string& what) {
  return [count, what] {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < count; ++i) paths.push_back(str(what, ' ', i));
    return paths;
  };
}

// ---- If ---------------------------------------------------------------------------------------

/// An If with a condition that only a run knows: both branches are recorded.
///
/// A branch may be impossible for the sizes of the trace, such as a branch for another sample rate.
/// Its error belongs to the run that takes it: an assertion and NaN are recorded in its place. A
/// TraceError is thrown at once, since it names the input to capture. So is one for branches with
/// results of other ranks: a trace that knows the condition records one of them.
class RecordedIf {
 public:
  explicit RecordedIf(const Call& call)
      : call_(call),
        graphs_{&call.graph("then_branch"), &call.graph("else_branch")},
        condition_(scalar_of(call.tensor(0))) {}

  Values run() {
    try {
      return recorded();
    } catch (const TraceError&) {
      throw;
    } catch (const MemoryError&) {
      throw;
    } catch (const Error&) {
      if (failing_) return recorded_without(*failing_);
      throw;
    }
  }

 private:
  /// Records the branches; those that return other sizes have unknown ones.
  Values recorded() {
    try {
      return both(0);
    } catch (const ShapeError&) {
      if (failing_ || layout_ == std::nullopt) throw;
      sizes_differ_ = true;
      const std::exception_ptr first = std::current_exception();
      try {
        return both(0);
      } catch (const Error&) {
        if (!ranks_differ_) std::rethrow_exception(first);
      }
    }
    throw TraceError(
        str("If: ", graphs_[0]->name, " and ", graphs_[1]->name,
            " return values of different ranks, and the condition is known only when "
            "the graph runs; pass tensors that it follows from as captures, not as arguments "
            "of the trace, or run eagerly"));
  }

  /// Records the branches; the one that fails is recorded second, as NaN of the other's types.
  Values recorded_without(std::size_t failing) {
    const std::exception_ptr first = std::current_exception();
    try {
      return both(1 - failing);
    } catch (const Error&) {
      if (!needs_unknown_sizes_) std::rethrow_exception(first);
    }
    sizes_differ_ = true;
    try {
      return both(1 - failing);
    } catch (const Error&) {
      std::rethrow_exception(first);
    }
  }

  Values both(std::size_t first) {
    layout_.reset();
    const PathsFn paths = paths_of(graphs_[0]->outputs.size(), "output");
    const Tensor takes_first = first == 0 ? condition_ : !condition_;
    const TreeLeaves leaves = cond_leaves(
        {std::nullopt, takes_first}, [&] { return branch(first); },
        [&] { return branch(1 - first); }, paths, paths);
    return layout_->values(leaves);
  }

  TreeLeaves branch(std::size_t which) {
    Values values = failing_ == which ? stand_ins(which) : results_of(which);
    if (!layout_) {
      layout_.emplace(values);
      results_ = values;
    }
    for (std::size_t i = 0; i < values.size() && i < results_.size(); ++i)
      if (values[i].kind == Value::Kind::tensor && results_[i].kind == Value::Kind::tensor)
        ranks_differ_ = ranks_differ_ || values[i].tensor.rank() != results_[i].tensor.rank();
    for (Value& value : values)
      if (sizes_differ_ && value.kind == Value::Kind::tensor)
        value.tensor = relax_shape(value.tensor, unknown_sizes(value.tensor.dims()));
    return layout_->leaves(values, "the branches of If");
  }

  Values results_of(std::size_t which) {
    if (failing_) return run_graph(*graphs_[which], {}, &call_.scope());
    try {
      return run_graph(*graphs_[which], {}, &call_.scope());
    } catch (const CancelledError&) {
      throw;
    } catch (const Error& error) {
      failing_ = which;
      reason_ = error.message();
      throw;
    }
  }

  /// Returns NaN, or zeros, of the types that the other branch returns, and asserts that it is
  /// taken.
  Values stand_ins(std::size_t which) {
    assert_that(which == 0 ? !condition_ : condition_,
                str("If: the run does not take the branch ", graphs_[which]->name,
                    ", which cannot run for the sizes of this trace: ", reason_));
    Values values;
    for (const Value& result : results_) {
      if (result.kind != Value::Kind::tensor) throw TraceError("only tensors have stand-ins");
      Dims dims = result.tensor.dims();
      for (Dim& dim : dims)
        if (!dim.has_size()) {
          dim = Dim(1);
          needs_unknown_sizes_ = true;
        }
      // A saved model has no assertion; NaN does not pass for a result there.
      const DType dtype = result.tensor.dtype();
      const Tensor stand_in = is_float(dtype)
                                  ? full(dims, std::numeric_limits<double>::quiet_NaN(), dtype)
                                  : zeros(dims, dtype);
      values.push_back(Value::of(stand_in, result.type));
    }
    return values;
  }

  const Call& call_;
  const std::array<const Graph*, 2> graphs_;
  const Tensor condition_;
  // The layout of the branch that is recorded first.
  std::optional<Layout> layout_;
  Values results_;
  bool sizes_differ_ = false, needs_unknown_sizes_ = false, ranks_differ_ = false;
  std::optional<std::size_t> failing_;  // the branch that cannot run
  std::string reason_;
};

/// A condition that a trace knows selects the branch.
Values run_if(const Call& call) {
  const Tensor& condition = call.tensor(0);
  if (condition.is_traced()) return RecordedIf(call).run();
  const char* branch = is_true(condition) ? "then_branch" : "else_branch";
  return run_graph(call.graph(branch), {}, &call.scope());
}

// ---- Loop -------------------------------------------------------------------------------------

/// Returns true if the body returns the condition that it gets, or true: the trip count alone ends
/// the loop.
bool is_counted(const Graph& body) {
  std::string name = body.outputs.at(0).name;
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    if (node->outputs.size() != 1 || node->outputs[0] != name) continue;
    if (node->op == "Identity" && node->domain.empty()) {
      name = node->inputs.at(0);
      continue;
    }
    const auto value = node->attributes.find("value");
    return node->op == "Constant" && value != node->attributes.end() &&
           value->second.tensor.is_present() && is_true(value->second.tensor.tensor);
  }
  if (name == body.inputs.at(1).name) return true;
  const auto constant = body.constants.find(name);
  return constant != body.constants.end() && is_true(constant->second.tensor);
}

/// A Loop node: its trip count, its condition, and its body.
class OnnxLoop {
 public:
  explicit OnnxLoop(const Call& call) : call_(call), body_(call.graph("body")) {
    for (std::size_t i = 2; i < call.input_count(); ++i) initial_.push_back(call.inputs()[i]);
    if (body_.inputs.size() != initial_.size() + 2 || body_.outputs.size() < initial_.size() + 1)
      call.refuse(str("the body takes ", body_.inputs.size(), " and returns ", body_.outputs.size(),
                      " values, for ", initial_.size(), " that are carried"));
    stacks_ = body_.outputs.size() - 1 - initial_.size();
    if (call.has(0)) trips_ = scalar_of(call.tensor(0));
    if (call.has(1)) condition_ = scalar_of(call.tensor(1));
    ends_early_ = !is_counted(body_);
  }

  Values run() {
    const bool knows_begin = !condition_ || !condition_->is_traced();
    if (knows_begin && condition_ && !is_true(*condition_)) trips_ = Value::integer(0).tensor;
    if (has_sequences() && (!is_tracing() || (is_known(trips_) && !ends_early_ && knows_begin)))
      return run_in_steps();
    if (!knows_begin) ends_early_ = true;
    // Sizes may change. Without an iteration, the initial state gives the sizes of the results.
    if (!is_tracing()) return run_eagerly();
    try {
      return recorded(false);
    } catch (const ShapeError& error) {
      // If the state gets another size than the initial one, sizes are unknown in the trace.
      try {
        return recorded(true);
      } catch (const TraceError&) {
        throw;  // names the size that the trace must know
      } catch (const Error&) {
        throw error;
      }
    }
  }

 private:
  static bool is_known(const std::optional<Tensor>& x) { return x && !x->is_traced(); }
  bool has_sequences() const {
    return std::any_of(initial_.begin(), initial_.end(),
                       [](const Value& value) { return value.kind != Value::Kind::tensor; });
  }
  std::int64_t known_trips() const {
    const ModeScope aside({});
    return std::max<std::int64_t>(cast(*trips_, i64).item<std::int64_t>(), 0);
  }

  /// Returns the outputs of the body: the condition, carried values, elements of stacks.
  Values iterate(Value iteration, const Tensor& condition, const Values& carried) const {
    Values inputs{std::move(iteration), Value::of(condition)};
    if (!condition.is_traced()) inputs[1].is_constant = true;
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    return run_graph(body_, inputs, &call_.scope());
  }

  /// Runs the loop as a C++ loop: its state may be any value, such as sequences of tensors of
  /// different ranks.
  Values run_in_steps() const {
    const std::int64_t most = trips_ ? known_trips() : std::numeric_limits<std::int64_t>::max();
    Values carried = initial_;
    std::vector<Tensors> stacks(stacks_);
    std::vector<ElementType> types(stacks_);
    Tensor condition = Value::truth(true).tensor;
    for (std::int64_t i = 0; i < most && is_true(condition); ++i) {
      check_cancellation();
      Values out = iterate(Value::integer(i), condition, carried);
      condition = scalar_of(out[0].tensor);
      carried.assign(out.begin() + 1,
                     out.begin() + 1 + static_cast<std::ptrdiff_t>(carried.size()));
      for (std::size_t s = 0; s < stacks_; ++s) {
        stacks[s].push_back(out[1 + carried.size() + s].tensor);
        types[s] = out[1 + carried.size() + s].type;
      }
    }
    for (std::size_t s = 0; s < stacks_; ++s) carried.push_back(stacked(s, stacks[s], types[s]));
    return carried;
  }

  Value stacked(std::size_t s, const Tensors& elements, ElementType type) const {
    if (!elements.empty()) return Value::of(stack(elements), type);
    const Declared& declared = body_.outputs[1 + initial_.size() + s];
    Dims dims{Dim(0)};
    if (declared.shape)
      for (const auto& [size, name] : *declared.shape)
        dims.emplace_back(std::max<std::int64_t>(size, 0));
    return Value::of(zeros(dims, dtype_of(declared.type).value_or(f32)), declared.type);
  }

  /// Runs the loop as a loop of Reel. If sizes of its state or elements change as no such loop
  /// allows, or if a loop in the body needs values that only a run knows, runs it as a C++ loop.
  Values run_eagerly() const {
    const auto fits = [&](const auto& run) -> std::optional<Values> {
      try {
        return run();
      } catch (const ShapeError&) {
        return {};
      } catch (const TraceError&) {
        return {};
      }
    };
    const auto done = fits([&] { return recorded(!is_known(trips_) || known_trips() > 0); });
    return done ? *done : run_in_steps();
  }

  /// Returns shape invariants of the carried values: none, or sizes that may change.
  std::vector<std::optional<PartialShape>> invariants(std::size_t before, bool may_change) const {
    std::vector<std::optional<PartialShape>> shapes;
    if (!may_change) return shapes;
    shapes.resize(before);
    for (std::size_t i = 0; i < initial_.size(); ++i)
      shapes.push_back(PartialShape::unknown_rank());
    return shapes;
  }

  /// Returns the initial state with sequences as arrays. The elements of an empty one have the type
  /// that an iteration gives them; it is recorded in a branch that never runs. may_change: the
  /// sizes of elements may differ.
  Values with_arrays(bool may_change) const {
    std::optional<Values> after;
    Values result = initial_;
    for (std::size_t i = 0; i < result.size(); ++i) {
      Value& value = result[i];
      if (value.kind != Value::Kind::sequence) continue;
      if (value.elements.empty() && !after) after = after_one_iteration();
      const TensorType type = element_type(value.elements.empty() ? (*after)[1 + i] : value);
      const Dims dims = may_change ? unknown_sizes(type.dims()) : known_or_new(type.dims());
      value = Value::sequence(array_of({type.dtype(), dims}, value.elements), value.type);
    }
    return result;
  }
  Values after_one_iteration() const {
    Values after;
    const auto leaf = [] { return TreeLeaves{TreeLeaf::of(scalar(0))}; };
    cond_leaves(
        {std::nullopt, scalar(false)},
        [&] {
          after = iterate(Value::of(scalar(0, i64)), scalar(true), initial_);
          return leaf();
        },
        leaf, paths_of(1, "output"), paths_of(1, "output"));
    return after;
  }
  /// Unknown sizes of the branch have no meaning outside of it.
  static Dims known_or_new(Dims dims) {
    for (Dim& dim : dims)
      if (!dim.has_size()) dim = Dim::unknown();
    return dims;
  }

  /// The loop as a loop of Reel. Its state: the condition, if the loop may end early, the number of
  /// the iteration, if it is no slice, and the carried values.
  struct Recorded {
    bool counts = false;    ///< the number of the iteration is a slice
    std::size_t first = 0;  ///< of the carried values in the state
    Layout layout;
    TreeLeaves initial;
    std::vector<std::optional<PartialShape>> invariants;
    std::optional<IterationCount> most;
    Values elements = {};  ///< of the stacks, in the last iteration: for their types
  };

  /// Records the loop, or runs it eagerly.
  Values recorded(bool may_change) const {
    const bool counts = stacks_ > 0 && !ends_early_ && is_known(trips_) && known_trips() > 0 &&
                        known_trips() <= kMaxCounts;
    const std::size_t first = (ends_early_ ? 1U : 0U) + (counts ? 0U : 1U);
    const Values start = has_sequences() ? with_arrays(may_change) : initial_;
    Recorded loop{counts, first, Layout(start), {}, invariants(first, may_change), {}};
    if (ends_early_)
      loop.initial.push_back(TreeLeaf::of(condition_ ? *condition_ : Value::truth(true).tensor));
    if (!counts) loop.initial.push_back(TreeLeaf::of(scalar(0, i64)));
    for (TreeLeaf& leaf : loop.layout.leaves(start, "Loop"))
      loop.initial.push_back(std::move(leaf));
    if (trips_)
      loop.most = trips_->is_traced() ? IterationCount(*trips_) : IterationCount(known_trips());
    const ScanResult result = stacks_ == 0 ? ScanResult{{}, run_while(loop)} : run_scan(loop);
    Values results = loop.layout.values(result.state, first);
    for (std::size_t s = 0; s < stacks_; ++s)
      results.push_back(Value::of(with_plain_dims(result.ys[s].tensor), loop.elements[s].type));
    return results;
  }

  /// Runs an iteration. slice: its number, if the loop counts. Returns the next state, and sets the
  /// elements of the stacks.
  TreeLeaves step(Recorded& loop, const Tensor& slice, const TreeLeaves& state) const {
    const Tensor i = loop.counts ? slice : state[loop.first - 1].tensor;
    const Tensor go = ends_early_ ? state[0].tensor : Value::truth(true).tensor;
    const Values out = iterate(Value::of(i), go, loop.layout.values(state, loop.first));
    TreeLeaves next;
    if (ends_early_) next.push_back(TreeLeaf::of(scalar_of(out[0].tensor)));
    if (!loop.counts) next.push_back(TreeLeaf::of(i + 1));
    const auto first_element = out.begin() + 1 + static_cast<std::ptrdiff_t>(initial_.size());
    const Values carried(out.begin() + 1, first_element);
    for (TreeLeaf& leaf : loop.layout.leaves(carried, "the body of Loop"))
      next.push_back(std::move(leaf));
    loop.elements.assign(first_element, out.end());
    return next;
  }
  LoopCondition goes_on(const TreeLeaves& state) const {
    return ends_early_ ? LoopCondition{std::nullopt, state[0].tensor} : LoopCondition{true, {}};
  }

  TreeLeaves run_while(Recorded& loop) const {
    WhileSpec spec;
    spec.name = call_.node().name;
    spec.cond = [&](const TreeLeaves& state) { return goes_on(state); };
    spec.body = [&](const TreeLeaves& state) { return step(loop, Tensor(), state); };
    spec.initial = loop.initial;
    spec.paths = paths_of(loop.initial.size(), "state");
    spec.returned_paths = no_paths();
    spec.shape_invariants = loop.invariants;
    spec.maximum_iterations = loop.most;
    return while_loop_leaves(spec);
  }

  ScanResult run_scan(Recorded& loop) const {
    ScanSpec spec;
    spec.name = call_.node().name;
    spec.initial = loop.initial;
    spec.shape_invariants = loop.invariants;
    spec.state_paths = paths_of(loop.initial.size(), "state");
    spec.returned_paths = no_paths();
    spec.xs_paths = paths_of(1, "iteration");
    spec.first_y_paths = spec.y_paths = paths_of(stacks_, "output");
    if (loop.counts) {
      spec.xs.push_back(TreeLeaf::of(range(known_trips(), i64)));
    } else if (!ends_early_ && is_known(trips_)) {
      spec.spatial_dim = Dim(known_trips());
    } else {
      spec.max_seq_len = loop.most;
      spec.cond = [&](const TreeLeaves& state) { return goes_on(state); };
      spec.cond_dims = Dims();
    }
    spec.body = [&](const TreeLeaves& x, const TreeLeaves& state) {
      ScanStep result;
      result.state = step(loop, loop.counts ? x[0].tensor : Tensor(), state);
      for (const Value& element : loop.elements) result.y.push_back(TreeLeaf::of(element.tensor));
      return result;
    };
    return scan_leaves(spec);
  }

  static constexpr std::int64_t kMaxCounts = 1 << 20;  // of numbers that are made before the loop

  const Call& call_;
  const Graph& body_;
  Values initial_;
  std::size_t stacks_ = 0;
  std::optional<Tensor> trips_, condition_;
  bool ends_early_ = false;
};

Values run_loop(const Call& call) { return OnnxLoop(call).run(); }

const Rule kRules[] = {
    {"If", run_if, "", 1, kLatestVersion, false},
    {"Loop", run_loop, "", 1, kLatestVersion, false},
};

}  // namespace

std::span<const Rule> control_rules() { return kRules; }

}  // namespace reel::imported
