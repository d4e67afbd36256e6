// trace/trace_causes.h — TraceCauses, the properties of arguments for which a function has several
// traces.
#pragma once

#include <cstddef>
#include <string>
#include <typeindex>
#include <vector>

#include "reel/core/types/leaf.h"
#include "reel/trace/signature.h"

namespace reel {

/// The arguments of a recorded call: their signature without the identities of dims.
struct TracedArguments {
  std::type_index type;
  StaticSizes sizes;
  std::vector<DType> dtypes;                           ///< by tensor
  std::vector<FixedValue> fixed;                       ///< numbers, texts, sizes of containers
  std::vector<std::string> tensor_names, fixed_names;  ///< "argument 0.cell.w"

  /// paths: of the leaves. dims: of the arguments.
  TracedArguments(std::type_index type, const TreeLeaves& leaves,
                  const std::vector<std::string>& paths, const Dims& dims,
                  const DynamicSizes& dynamic);
};

/// A property of arguments that differs between two calls.
struct ArgumentDifference {
  std::string name;  ///< "argument 1", "the size of dim time"
  std::string first, now;
  std::string repair;  ///< a sentence
};

/// Compares the traces of a function: which property of the arguments differs, and how one trace
/// could serve all calls.
class TraceCauses {
 public:
  /// Notes a trace.
  void add(TracedArguments arguments);
  /// Returns the number of traces that were noted.
  std::size_t count() const { return count_; }
  /// Returns the properties in which the arguments differ from the first trace's; none if
  /// they are of another C++ type or structure. Several plain axes that changed from and to the
  /// same size count once.
  std::vector<ArgumentDifference> since_first(const TracedArguments& arguments) const;
  /// Returns a line for each property that differs between traces: its values, the number of traces
  /// and the repair. Empty if no two traces differ.
  std::string text() const;

 private:
  struct Property {
    std::string name, repair;
    std::vector<std::string> values;  ///< distinct, in the order of the traces
  };
  /// Traces with arguments of one C++ type and structure.
  struct Group {
    TracedArguments first;
    std::size_t traces = 1;
    std::vector<Property> properties;  ///< that differ
  };
  static void note(std::vector<Property>& properties, const ArgumentDifference& found);
  std::vector<Property> containers_that_differ() const;

  std::vector<Group> groups_;
  std::size_t count_ = 0;
};

}  // namespace reel
