// trace/traced_function.h — TracedFunction, what jit makes of a function: graphs by signature.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reel/core/graph.h"
#include "reel/core/leaf.h"

namespace reel {

/// A function on leaves that is recorded at its first call with a signature, and run as a graph
/// from then on.
///
/// The signature holds dtypes, static sizes, which axes share a dim, and fixed leaves; lengths and
/// identities of dims are not in it. Calls inside a trace or from several threads at once are the
/// caller's business (frontend/jit.h).
class TracedFunction {
 public:
  /// What the user's function returned: its leaves, and an object of its type to fill them into.
  struct Traced {
    TreeLeaves leaves;
    std::shared_ptr<const void> prototype;
  };
  /// The same, with the paths of leaves: those of arguments begin with the argument's place,
  /// 0.cell.w. Both are empty where only the library looks at the graph.
  struct Recorded : Traced {
    std::vector<std::string> argument_paths, result_paths;
  };
  using Function = std::function<Recorded(const TreeLeaves&)>;

  /// Runs a graph on its inputs and captures. (Given from above: a run may be one record of a
  /// tape.)
  using Run = std::function<Tensors(const GraphRef& graph, Tensors inputs)>;

  /// What a graph became for the executor, in words.
  using Explain = std::function<std::string(const Graph& graph)>;

  /// Whether the graph is simplified before it is reversed: where not, its gradient adds up in the
  /// order in which eager code's does.
  enum class Form { simplified, as_recorded };

  TracedFunction(std::string name, Run run, Explain explain, Form form = Form::simplified)
      : name_(std::move(name)), run_(std::move(run)), explain_(std::move(explain)), form_(form) {}

  /// Runs the graph for this signature, after recording `function` if there is none. Tensors among
  /// the arguments that nobody else holds may be used up.
  ///
  /// of_any_length: places of tensors whose first axis, where it is a plain one, is not in the
  /// signature: the trace does not know its size.
  Traced operator()(TreeLeaves arguments, const Function& function,
                    const std::vector<std::size_t>& of_any_length = {});

  int trace_count() const { return trace_count_; }
  /// The graph of the last call. Throws ArgumentError before the first one.
  const Graph& graph() const;
  /// What the executor made of it. Throws ArgumentError before the first call.
  std::string explain() const;
  /// What the graph of the last call holds by reference.
  const Tensors& captures() const;

 private:
  struct Entry;
  std::shared_ptr<Entry> trace(const TreeLeaves& arguments, const Function& function,
                               const std::vector<std::size_t>& of_any_length);
  void warn_of_fixed_values(const TreeLeaves& arguments);

  std::string name_;
  Run run_;
  Explain explain_;
  Form form_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::shared_ptr<Entry> last_;
  int trace_count_ = 0;
  std::vector<std::string> first_fixed_;
};

}  // namespace reel
