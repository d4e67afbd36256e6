// trace/traced_function.h — TracedFunction, the object behind jit: one graph per signature.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"
#include "reel/core/types/leaf.h"
#include "reel/trace/dynamic_sizes.h"

REEL_API_BEGIN
namespace reel {
class TraceCauses;       // trace/trace_causes.h
struct TracedArguments;  // trace/trace_causes.h

/// A function on leaves that is recorded at its first call with a signature, and then runs as a
/// graph.
///
/// The signature holds the C++ types of the arguments, dtypes, static sizes, names of dims, which
/// axes share a dim, and fixed leaves. It does not hold lengths and identities of dims.
///
/// Not thread-safe: the caller must serialise calls. The caller also handles calls inside a trace
/// (frontend/jit.h).
class TracedFunction {
 public:
  /// An object of the type that the function returned.
  class Prototype {
   public:
    Prototype() = default;
    template <class R>
    static Prototype of(R object) {
      Prototype result;
      result.object_ = std::make_shared<const R>(std::move(object));
      result.type_ = &typeid(R);
      return result;
    }
    /// Returns the object. Throws InternalError if it has another type.
    template <class R>
    const R& as() const {
      if (!type_ || *type_ != typeid(R)) refuse(typeid(R));
      return *static_cast<const R*>(object_.get());
    }

   private:
    [[noreturn]] void refuse(const std::type_info& wanted) const;

    std::shared_ptr<const void> object_;
    const std::type_info* type_ = nullptr;
  };
  /// The result of the user's function: its leaves, and an object of its type to fill them into.
  struct Traced {
    TreeLeaves leaves;
    Prototype prototype;
  };
  /// A traced result with the paths of leaves; an argument's path begins with its place: 0.cell.w.
  /// Both lists are empty for graphs that users do not see.
  struct Recorded : Traced {
    std::vector<std::string> argument_paths, result_paths;
  };
  using Function = std::function<Recorded(const TreeLeaves&)>;

  /// Runs a graph on its inputs and captures. If it throws, it must leave `inputs` as they were.
  /// The creator passes it in, as a tape may have to record the run.
  using Run = std::function<Tensors(const GraphRef& graph, Tensors&& inputs)>;

  /// Describes the graph as the executor runs it.
  /// graph: of the last call. recorded: the graph that calls under a tape run.
  using Explain = std::function<std::string(const Graph& graph, const Graph& recorded)>;

  /// Whether the graph is simplified before its gradient is derived. The gradient of a graph as
  /// recorded adds up in the order of eager code. folded: simplified, and calls without a tape run
  /// ops on captures once for all (fold_captures.h).
  enum class Form { simplified, folded, as_recorded };

  /// max_traces: number of graphs kept, the most recently called; 0: all.
  TracedFunction(std::string name, Run run, Explain explain, Form form = Form::simplified,
                 std::size_t max_traces = 0)
      : name_(std::move(name)),
        run_(std::move(run)),
        explain_(std::move(explain)),
        form_(form),
        max_traces_(max_traces) {}

  /// Runs the graph for this signature; records `function` first if there is none. Moves the
  /// tensors out of the arguments; those with a reference count of one may be overwritten. If the
  /// call throws, in recording too, the arguments are unchanged.
  ///
  /// type: C++ type of the arguments' tree; with the leaves it decides which C++ code `function`
  /// runs.
  /// dynamic: static sizes that are not part of the signature; the trace does not know them.
  /// before_run: called before the graph runs, with the result except its tensors and dims. It must
  /// allocate all memory of the result, since nothing may fail after a run that has overwritten
  /// arguments.
  /// Throws ArgumentError if no argument has a dim that `dynamic` names; ShapeError if `function`
  /// names a dim of an argument itself and this call's argument has another dim there; rethrows
  /// errors of `function` and of the run.
  Traced operator()(std::type_index type, TreeLeaves& arguments, const Function& function,
                    const DynamicSizes& dynamic = {},
                    const std::function<void(const Traced&)>& before_run = {});

  int trace_count() const { return trace_count_; }
  /// Returns the number of the arguments' leaves in the last call; 0 before the first one.
  std::size_t last_leaf_count() const { return leaf_count_; }
  /// Drops all graphs. A graph that runs, or that a tape holds, lives until these are done.
  void clear();
  /// Returns the graph of the last call. Throws ArgumentError before the first call, and after
  /// clear() until the next one.
  const Graph& graph() const;
  /// Returns the graph that calls under a tape with these arguments run. Throws as graph().
  const Graph& recorded_graph() const;
  /// Returns the executor's description of it, and which arguments make traces differ. Throws
  /// ArgumentError as graph() does.
  std::string explain() const;
  /// Returns the tensors that the graph of the last call holds by reference. Throws ArgumentError
  /// as graph() does.
  const Tensors& captures() const;

 private:
  struct Entry;
  /// The key of a graph.
  struct Signature {
    std::type_index type;
    std::string leaves;  ///< signature_of()
    bool operator==(const Signature&) const = default;
  };
  struct SignatureHash {
    std::size_t operator()(const Signature& signature) const {
      return std::hash<std::string>()(signature.leaves);
    }
  };
  std::shared_ptr<Entry> trace(std::type_index type, const TreeLeaves& arguments,
                               const Function& function, const DynamicSizes& dynamic);
  /// Drops the least recently called graphs until there is room for another.
  void make_room();
  /// Notes a trace for explain(). At the ninth trace, warns of the property that changes.
  void note_causes(TracedArguments arguments);
  const Entry& last_entry(const char* wanted) const;

  std::string name_;
  Run run_;
  Explain explain_;
  Form form_;
  std::size_t max_traces_;
  std::unordered_map<Signature, std::shared_ptr<Entry>, SignatureHash> entries_;
  std::shared_ptr<Entry> last_;
  int trace_count_ = 0;
  std::size_t leaf_count_ = 0;
  std::uint64_t call_count_ = 0;
  std::shared_ptr<TraceCauses> causes_;  ///< null before the first trace that names its arguments
};

}  // namespace reel
REEL_API_END
