// frontend/jit.h — jit: a function that is recorded once and then runs as a graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "reel/core/mode.h"
#include "reel/core/no_memory.h"
#include "reel/core/passes.h"
#include "reel/frontend/run_profile.h"
#include "reel/frontend/sparse_invariants.h"
#include "reel/frontend/taken_leaves.h"
#include "reel/frontend/tree.h"
#include "reel/trace/traced_function.h"

namespace reel {

/// What runs a traced function.
enum class Executor {
  interpreter,  ///< the reference: op by op, the bits of eager mode
  plan,      ///< a flat list of instructions over planned memory, what need not wait for a loop's
             ///< steps done for all of them at once: faster, the same results up to rounding
  dataflow,  ///< by tokens, as TensorFlow does: each op as soon as its inputs are there, iterations
             ///< of loops beside each other; the bits of the interpreter. What prints does so
             ///< when data reaches it, and only if something reads what it gives: x = print(x)
};

struct JitOptions {
  std::string name = "jit";  ///< for errors and dumps
  Executor executor = Executor::plan;
  Passes passes = {};  ///< of the plan
  /// Times every op of a plan, for explain(), profile() and pictures: costs some 30 ns each. By the
  /// dataflow executor, keeps a record of the last call, for profile() and pictures. ArgumentError
  /// with the interpreter.
  bool profile = false;
  /// Of the dataflow executor: so many iterations of every loop are in flight at most. 0: as many
  /// as WhileOptions say, and 10 of scans. Never changes a result.
  int parallel_iterations = 0;
  /// Keeps at most so many traces: a new one takes the place of that which was not called for
  /// longest, with its plans and what it captured. 0: keeps all. A call with arguments of a trace
  /// that is gone records again.
  int max_traces = 0;
};

namespace detail {

std::shared_ptr<TracedFunction> make_traced_function(const JitOptions& options);
void clear_traces(TracedFunction& traced);
RunProfile profile_of(const TracedFunction& traced, const JitOptions& options);

/// The result of a trace as the next runs need it: without promises.
template <class R>
TracedFunction::Prototype prototype_of(const R& result) {
  TreeLeaves leaves = flatten(result);
  for (TreeLeaf& leaf : leaves) leaf.tensor = Tensor();
  return TracedFunction::Prototype::of(unflatten(result, leaves));
}

}  // namespace detail

/// A traced function. Copies share their graphs. Calls from several threads at once need a lock of
/// the caller's.
template <class F>
class Jitted {
 public:
  Jitted(F f, const JitOptions& options)
      : f_(std::move(f)), options_(options), traced_(detail::make_traced_function(options)) {}

  /// The result of f. Records it first where the arguments have a new signature: their C++ types,
  /// dtypes, static sizes, names of dims, which axes share a Dim, and the exact values of what is
  /// no tensor (numbers, enumerators, texts, sizes and keys of containers). How many elements a
  /// SparseTensor has is not in it: one trace serves any number, and does not know it. Inside
  /// another trace f is simply recorded as part of that. Throws what f throws; ShapeError when f
  /// names a Dim that is another one in this call's arguments; TraceError where f asks for a value
  /// that only a run of the graph knows.
  ///
  /// Tensors that were moved in, and whose reference count is one, may give their memory to
  /// results: a training step called as model = step(std::move(model), batch) updates its
  /// parameters in place. Not under a tape, by a plan only, and not before the last op that may
  /// fail. If the call throws, what was moved in is as it was.
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

  /// How often f was recorded.
  int trace_count() const { return traced_->trace_count(); }
  /// Drops all traces, with their plans and what they captured: the next call records again. Frees
  /// the memory that plans of this thread have left for later calls, too. What a tape or a pullback
  /// needs of earlier calls stays until these are gone. Copies of this object have the same traces.
  void clear_traces() const { detail::clear_traces(*traced_); }
  /// The graph of the last call; print it with <<. Valid until the trace is dropped: by
  /// clear_traces(), or by later calls with JitOptions::max_traces. Throws ArgumentError before the
  /// first call, and after clear_traces().
  const Graph& graph() const { return traced_->graph(); }
  /// What the graph of the last call became, in words: how many kinds of arguments were recorded,
  /// the bytes of each class of buffers, and of each loop what was hoisted and sunk out of it,
  /// packed, fused and saved for its gradient, how it is cut into blocks of rows, and for what was
  /// not done, why. Then the time that it is predicted to take, by its multiplications, bytes and
  /// elements at the rates of this machine (measured when first asked for), and with
  /// JitOptions::profile the time that calls took, the first one left out as soon as there are
  /// others. Under tapes other graphs run, of each a part. docs/explain.md reads one line by line.
  ///
  /// Throws ArgumentError before the first call.
  std::string explain() const { return traced_->explain(); }
  /// What the runs of the graph of the last call took, with JitOptions::profile: the costliest ops
  /// and loops, and the last run as a time line; of the dataflow executor, all of the last run. A
  /// call under tapes runs other graphs: there is a part for each that has run so far.
  ///
  /// Throws ArgumentError without JitOptions::profile, and before the first call.
  RunProfile profile() const { return detail::profile_of(*traced_, options_); }
  /// The tensors from outside that the graph of the last call holds, by reference. Valid as long,
  /// and throws, as graph().
  const Tensors& captures() const { return traced_->captures(); }

 private:
  /// Args: as the caller's arguments were deduced; moved in unless they are lvalue references.
  template <class R, class... Args>
  R run(Args&... args) const {
    const std::tuple<const std::decay_t<Args>&...> arguments(args...);
    const std::vector<std::size_t> of_any_length = detail::leaves_of_any_length(arguments);
    detail::TakenLeaves<Args...> taken(args...);
    const auto function = [&](const TreeLeaves& promises) {
      const auto inside = unflatten(std::tuple<std::decay_t<Args>...>(args...), promises);
      const R result = std::apply(f_, inside);
      return TracedFunction::Recorded{{flatten(result), detail::prototype_of(result)},
                                      leaf_paths(arguments),
                                      leaf_paths(result)};
    };
    std::optional<R> result;  // made before the graph runs: behind it nothing may fail
    const auto make_result = [&](const TracedFunction::Traced& traced) {
      result.emplace(traced.prototype.template as<R>());
    };
    const TracedFunction::Traced traced =
        (*traced_)(typeid(std::tuple<std::decay_t<Args>...>), taken.leaves, function, of_any_length,
                   make_result);
    taken.keep();
    detail::Unflatten fill{traced.leaves};
    detail::walk<false>(*result, {}, fill);
    return std::move(*result);
  }

  F f_;
  JitOptions options_;
  std::shared_ptr<TracedFunction> traced_;
};

/// f, recorded at its first call with a kind of arguments and run as a graph from then on; the same
/// results.
///
/// f: takes and returns trees. It must not keep tensors or rely on being called: C++ code in it
/// runs while recording only. Parameters are passed as arguments; a captured tensor becomes an
/// operand of the graph, held by reference.
template <class F>
Jitted<std::decay_t<F>> jit(F&& f, const JitOptions& options = {}) {
  return Jitted<std::decay_t<F>>(std::forward<F>(f), options);
}

}  // namespace reel
