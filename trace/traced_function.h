// trace/traced_function.h — TracedFunction, what jit makes of a function: graphs by signature.
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

#include "reel/core/graph.h"
#include "reel/core/leaf.h"

namespace reel {

/// A function on leaves that is recorded at its first call with a signature, and run as a graph
/// from then on.
///
/// The signature holds the C++ types of the arguments, dtypes, static sizes, names of dims, which
/// axes share a dim, and fixed leaves; lengths and identities of dims are not in it. Calls inside a
/// trace or from several threads at once are the caller's business (frontend/jit.h).
class TracedFunction {
 public:
  /// An object of whichever type the function returned.
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
    /// Throws InternalError unless it is of this type.
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
  /// What the user's function returned: its leaves, and an object of its type to fill them into.
  struct Traced {
    TreeLeaves leaves;
    Prototype prototype;
  };
  /// The same, with the paths of leaves: those of arguments begin with the argument's place,
  /// 0.cell.w. Both are empty where only the library looks at the graph.
  struct Recorded : Traced {
    std::vector<std::string> argument_paths, result_paths;
  };
  using Function = std::function<Recorded(const TreeLeaves&)>;

  /// Runs a graph on its inputs and captures; if it throws, `inputs` holds what it held before.
  /// (Given from above: a run may be one record of a tape.)
  using Run = std::function<Tensors(const GraphRef& graph, Tensors&& inputs)>;

  /// What a graph became for the executor, in words.
  using Explain = std::function<std::string(const Graph& graph)>;

  /// Whether the graph is simplified before it is reversed: where not, its gradient adds up in the
  /// order in which eager code's does.
  enum class Form { simplified, as_recorded };

  /// max_traces: how many graphs are kept, those of the last calls; 0: all.
  TracedFunction(std::string name, Run run, Explain explain, Form form = Form::simplified,
                 std::size_t max_traces = 0)
      : name_(std::move(name)),
        run_(std::move(run)),
        explain_(std::move(explain)),
        form_(form),
        max_traces_(max_traces) {}

  /// Runs the graph for this signature, after recording `function` if there is none. Takes the
  /// tensors out of the arguments; those whose reference count is one may be used up. If the call
  /// throws, recording included, the arguments are as they were.
  ///
  /// type: of the tree that the leaves are of; with the leaves it decides which C++ code
  /// `function` runs. of_any_length: places of tensors whose first axis, where it is a plain one,
  /// is not in the signature: the trace does not know its size. before_run: called before the
  /// graph runs, with the result but for its tensors and dims. It allocates the memory that the
  /// result needs: after a run that has written over arguments nothing may fail.
  Traced operator()(std::type_index type, TreeLeaves& arguments, const Function& function,
                    const std::vector<std::size_t>& of_any_length = {},
                    const std::function<void(const Traced&)>& before_run = {});

  int trace_count() const { return trace_count_; }
  /// Forgets all graphs. Those that run, or that tapes hold, live until these are done.
  void clear();
  /// The graph of the last call. Throws ArgumentError before the first one, and after clear().
  const Graph& graph() const;
  /// What the executor made of it. Throws ArgumentError as graph() does.
  std::string explain() const;
  /// What the graph of the last call holds by reference.
  const Tensors& captures() const;

 private:
  struct Entry;
  struct First;
  /// What decides whether a graph serves a call.
  struct Signature {
    std::type_index type;
    std::string leaves;  ///< each value says how long it is, so that no text can pass for another
    bool operator==(const Signature&) const = default;
  };
  struct SignatureHash {
    std::size_t operator()(const Signature& signature) const {
      return std::hash<std::string>()(signature.leaves);
    }
  };
  std::shared_ptr<Entry> trace(std::type_index type, const TreeLeaves& arguments,
                               const Function& function,
                               const std::vector<std::size_t>& of_any_length);
  /// Forgets the graphs that were not called for longest, so that there is room for another.
  void make_room();
  void warn_of_changes(std::type_index type, const TreeLeaves& arguments) const;
  const Entry& last_entry(const char* wanted) const;

  std::string name_;
  Run run_;
  Explain explain_;
  Form form_;
  std::size_t max_traces_;
  std::unordered_map<Signature, std::shared_ptr<Entry>, SignatureHash> entries_;
  std::shared_ptr<Entry> last_;
  int trace_count_ = 0;
  std::uint64_t call_count_ = 0;
  std::shared_ptr<const First> first_;  ///< of the first trace
};

}  // namespace reel
