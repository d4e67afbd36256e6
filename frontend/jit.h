// frontend/jit.h — jit: records a function once and then runs it as a graph.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/options/passes.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/loops/state/sparse_invariants.h"
#include "reel/frontend/run_profile.h"
#include "reel/frontend/tree/taken_leaves.h"
#include "reel/frontend/tree/tree.h"
#include "reel/trace/traced_function.h"

REEL_API_BEGIN
namespace reel {

/// Selects how a traced function runs.
enum class Executor {
  interpreter,  ///< the reference: op by op, with the bits of eager mode
  plan,  ///< instructions over a planned memory; runs work without a loop-carried dependency for
         ///< all iterations at once. Fastest; the same results up to rounding.
  dataflow,  ///< by tokens, as TensorFlow does: runs each op as soon as its inputs are ready, and
             ///< several iterations of a loop at the same time. The bits of the interpreter.
             ///< print() prints when data reaches it, and only if its result is read: x = print(x).
};

/// An axis of the tensors of an argument: JitOptions::any_length.
struct AnyLength {
  std::size_t argument;  ///< position among the arguments
  std::size_t axis;      ///< of each tensor; no effect on named axes and tensors with fewer axes
  /// Without `of_axis`: the first axis of each tensor.
  AnyLength(std::size_t of_argument, std::size_t of_axis = 0)
      : argument(of_argument), axis(of_axis) {}
};

/// Options of jit.
struct JitOptions {
  std::string name = "jit";            ///< named in errors and dumps
  Executor executor = Executor::plan;  ///< runs the graph
  Passes passes = {};                  ///< passes of the plan executor
  /// Profiles calls, for profile() and pictures. Plan: times every op, for explain() too, at a cost
  /// of about 30 ns each. Dataflow: records the last call. The interpreter does not support it:
  /// jit() throws ArgumentError.
  bool profile = false;
  /// Calls throw NumericsError at the first op that makes a NaN or an infinity, as if a DetectNan
  /// were active around each call and around its gradient.
  bool detect_nan = false;
  /// Dataflow executor: the largest number of iterations of each loop in flight. 0: the loop's own
  /// WhileOptions::parallel_iterations; 10 for scans. Never changes a result. Must not be negative.
  int parallel_iterations = 0;
  /// The largest number of traces to keep; 0: no limit. A new trace replaces the least recently
  /// called one, with its plans and captured tensors. A later call that needs the replaced trace
  /// records again. Must not be negative.
  int max_traces = 0;
  /// Plain axes for which one trace serves all sizes: {0} for the first axis of the tensors of
  /// argument 0, {{0, 1}} for their second axis. Their sizes are not part of the signature, and f
  /// cannot read them. Named axes keep their dims.
  std::vector<AnyLength> any_length = {};
  /// Names of dims for which one trace serves all sizes: {Dim("batch"), Dim("time")}. The sizes of
  /// these dims, and of dims computed from them, are not part of the signature. Calls throw
  /// TraceError if f or one of its ops needs such a size, and ArgumentError for a name that no dim
  /// of the arguments has. Ignored in a call inside another trace.
  Dims dynamic = {};
};

namespace detail {

std::shared_ptr<TracedFunction> make_traced_function(const JitOptions& options);
void clear_traces(TracedFunction& traced);
RunProfile profile_of(const TracedFunction& traced, const JitOptions& options);
/// Returns the sizes that the options and the types of the arguments leave out of the signature.
/// Throws ArgumentError for a position without an argument.
DynamicSizes dynamic_sizes(const TakenLeaves& arguments, const std::vector<AnyLength>& axes,
                           const Dims& dims);

/// Returns the result of a trace without its promises, as later runs reuse it.
template <class R>
TracedFunction::Prototype prototype_of(const R& result) {
  R empty = result;
  drop_tensors(TreeSlot(empty));
  return TracedFunction::Prototype::of(std::move(empty));
}

}  // namespace detail

/// A traced function. Copies share their graphs. Not thread-safe: concurrent calls need a lock of
/// the caller's.
///
/// Memory: a thread holds the memory of plans between calls. The destructor of the last copy frees
/// its plans' memory on this thread, unless plans of other functions need it; tapes and pullbacks
/// of earlier calls delay that until they are destroyed. Other threads free the memory at
/// their next call of a jitted function, and at their end.
template <class F>
class Jitted {
 public:
  Jitted(F f, const JitOptions& options)
      : f_(std::move(f)), options_(options), traced_(detail::make_traced_function(options)) {}

  /// Returns the result of f.
  ///
  /// Records f first if the arguments have a new signature: C++ types, dtypes, static sizes, names
  /// of dims, which axes share a Dim, and the exact values of fixed leaves (numbers, enumerators,
  /// strings, sizes and keys of containers). The number of elements of a SparseTensor is not part
  /// of the signature: one trace serves any number, and f cannot read it. Inside another trace, f
  /// is recorded into it.
  ///
  /// Throws the exceptions of f; ShapeError if f names a Dim that is a different one in this call's
  /// arguments; TraceError if f reads a value that only a run of the graph knows; ArgumentError for
  /// options that do not fit the arguments.
  ///
  /// Donation: moved-in tensors with a reference count of one may give their memory to results. A
  /// training step called as model = step(std::move(model), batch) updates its parameters in place.
  /// Only plans donate, only if no tape is active, and only after the last op that may fail, except
  /// to set_at and its like. If the call throws, the moved-in arguments are as they were before.
  ///
  /// A call while eager mode takes a gradient is one op of this gradient: it adds up its own
  /// contributions to a cotangent first, in its own order. The gradient may differ by rounding from
  /// the eager gradient of f (docs/traces.md).
  template <class... Args>
  auto operator()(Args&&... args) const {
    static_assert(
        std::is_invocable_v<const F&, const std::decay_t<Args>&...>,
        "a jitted function is called with the arguments of f, which takes them by value or "
        "by const reference, not as Tensor&: return what has changed");
    using R = std::decay_t<std::invoke_result_t<const F&, const std::decay_t<Args>&...>>;
    static_assert(
        !std::is_void_v<R>,
        "a jitted function returns its results, a tree of tensors, not void: what it does "
        "besides happens while it is recorded only");
    if (is_tracing()) return R(f_(std::as_const(args)...));
    return as_memory_error(options_.name, [&] { return run<R, Args...>(args...); });
  }

  /// Returns how many times f was recorded.
  int trace_count() const { return traced_->trace_count(); }
  /// Drops all traces with their plans and captured tensors, so that the next call records again.
  /// Also frees the memory that plans of this thread hold for later calls. Tapes and pullbacks of
  /// earlier calls keep the data that they need. Copies of this object share their traces, and lose
  /// them too.
  void clear_traces() const { detail::clear_traces(*traced_); }
  /// Returns the graph of the last call; print it with <<. Valid until the trace is dropped, by
  /// clear_traces() or because of JitOptions::max_traces. Throws ArgumentError before the first
  /// call and after clear_traces().
  const Graph& graph() const { return traced_->graph(); }
  /// Returns a text about the compiled graph of the last call: the number of recorded signatures,
  /// and the arguments that made them differ, such as a number that is no Tensor; the bytes of each
  /// class of buffers, and remarks on each loop. These name the ops that were hoisted, sunk, packed
  /// or fused, the residuals saved for the gradient, the row blocks, and the reasons for rewrites
  /// that were not done. Then the predicted time, from the multiplications, bytes and elements at
  /// the rates of this machine (measured at the first request). With JitOptions::profile also the
  /// measured time of the calls, without the first one as soon as there are others. Calls under
  /// tapes run other graphs: each has a part of its own.
  /// docs/explain.md explains the text line by line.
  ///
  /// Throws ArgumentError before the first call.
  std::string explain() const { return traced_->explain(); }
  /// Returns the measured time of the last call's graph: the costliest ops and loops over all runs,
  /// and a time line of the last run. With the dataflow executor, everything is from the last run.
  /// Calls under tapes run other graphs: there is a part for each of them that has run.
  ///
  /// Requires JitOptions::profile. Throws ArgumentError without it, and before the first call.
  RunProfile profile() const { return detail::profile_of(*traced_, options_); }
  /// Returns the tensors that the graph of the last call holds by reference: those captured from
  /// outside, and results of ops on them alone. Lifetime and errors as for graph().
  const Tensors& captures() const { return traced_->captures(); }

 private:
  /// Args: deduced from the caller's arguments; an argument is moved in unless Args is an lvalue
  /// reference.
  template <class R, class... Args>
  R run(Args&... args) const {
    const std::array<detail::Argument, sizeof...(Args)> arguments{
        detail::argument_of<Args>(args)...};
    detail::TakenLeaves taken(arguments, traced_->last_leaf_count());
    const DynamicSizes dynamic =
        detail::dynamic_sizes(taken, options_.any_length, options_.dynamic);
    const auto function = [&](const TreeLeaves& promises) {
      std::tuple<std::decay_t<Args>...> inside(args...);
      detail::fill_tree(detail::TreeSlot(inside), promises);
      const R result = std::apply(f_, std::as_const(inside));
      return TracedFunction::Recorded{{flatten(result), detail::prototype_of(result)},
                                      detail::paths_of(arguments),
                                      leaf_paths(result)};
    };
    std::optional<R> result;  // made before the graph runs: nothing may fail after it
    const auto make_result = [&](const TracedFunction::Traced& traced) {
      result.emplace(traced.prototype.template as<R>());
    };
    TracedFunction::Traced traced = (*traced_)(typeid(std::tuple<std::decay_t<Args>...>),
                                               taken.leaves, function, dynamic, make_result);
    taken.keep();
    detail::fill_tree(detail::TreeSlot(*result), std::move(traced.leaves));
    return std::move(*result);
  }

  F f_;
  JitOptions options_;
  std::shared_ptr<TracedFunction> traced_;
};

/// Returns a function with the results of f that records f at the first call with each signature,
/// and runs the graph from then on.
///
/// f: takes and returns trees. It must neither keep tensors nor depend on being called: its C++
/// code runs only while recording. Pass parameters as arguments; a captured tensor becomes an
/// operand of the graph, held by reference. Throws ArgumentError for options that are negative or
/// that do not fit the executor.
template <class F>
Jitted<std::decay_t<F>> jit(F&& f, const JitOptions& options = {}) {
  return Jitted<std::decay_t<F>>(std::forward<F>(f), options);
}

}  // namespace reel
REEL_API_END
