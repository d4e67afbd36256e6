#include "reel/frontend/optimisers/parameter_group.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/optimisers/optimiser.h"
#include "reel/frontend/tree/refuse_arrays.h"

namespace reel::detail {
namespace {

/// group: "AdamW: group 0".
void check_frozen(const std::string& group, const ParameterGroup& options) {
  if (options.rate != 1)
    throw ArgumentError(
        str(group, " is frozen and has a rate of ", options.rate, "; leave the rate out"));
  if (options.weight_decay)
    throw ArgumentError(str(group, " is frozen and has a weight_decay of ", *options.weight_decay,
                            "; leave the weight_decay out"));
}

void check_group(const char* optimiser, std::size_t number, const ParameterGroup& group,
                 std::optional<double> weight_decay) {
  if (!group.contains)
    throw ArgumentError(str(optimiser, ": a group needs the function `contains`"));
  if (group.frozen) return check_frozen(str(optimiser, ": group ", number), group);
  check_not_negative(optimiser, "the rate of a group", group.rate);
  if (!group.weight_decay) return;
  if (!weight_decay)
    throw ArgumentError(
        str(optimiser, ": a group has a weight_decay, but ", optimiser, " has none; use AdamW"));
  check_not_negative(optimiser, "the weight_decay of a group", *group.weight_decay);
}

/// Returns the options of a parameter; counts the members of its group.
LeafOptions options_of(const std::vector<ParameterGroup>& groups, const std::string& path,
                       const Tensor& parameter, double weight_decay,
                       std::vector<std::int64_t>& members) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!groups[g].contains(path, parameter)) continue;
    ++members[g];
    return {groups[g].rate, groups[g].weight_decay.value_or(weight_decay), groups[g].frozen};
  }
  return {1, weight_decay};
}

}  // namespace

GroupOptions group_options(const char* optimiser, const TreeLeaves& parameters,
                           const PathsFn& paths, const std::vector<ParameterGroup>& groups,
                           std::optional<double> weight_decay) {
  refuse_arrays(optimiser, parameters, paths);
  if (std::none_of(parameters.begin(), parameters.end(), is_floating))
    throw ArgumentError(str(optimiser, ": the parameters have no floating tensor to update"));
  GroupOptions result{{1, weight_decay.value_or(0)}};
  if (groups.empty()) return result;
  for (std::size_t g = 0; g < groups.size(); ++g)
    check_group(optimiser, g, groups[g], weight_decay);
  const std::vector<std::string> names = paths();
  std::vector<std::int64_t> members(groups.size(), 0);
  std::string all;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_floating(parameters[i])) continue;
    result.of_tensors.push_back(
        options_of(groups, names[i], parameters[i].tensor, weight_decay.value_or(0), members));
    all += str(all.empty() ? "" : ", ", names[i].empty() ? "the tensor" : names[i]);
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (!members[g])
      throw ArgumentError(str(optimiser, ": group ", g, " contains no parameter that is not in a ",
                              "group before it; the parameters are ", all));
  return result;
}

void check_groups(const char* optimiser, const TreeLeaves& parameters, const GroupOptions& groups) {
  if (groups.of_tensors.empty()) return;
  const auto tensors =
      static_cast<std::size_t>(std::count_if(parameters.begin(), parameters.end(), is_floating));
  if (tensors != groups.of_tensors.size())
    throw StructureError(str(optimiser,
                             ": the parameters have another structure than those that it was made "
                             "for\n  ",
                             tensors, " floating tensors, when it was made ",
                             groups.of_tensors.size()));
}

TreeLeaves stop_frozen_gradients(const char* optimiser, TreeLeaves parameters,
                                 const GroupOptions& groups) {
  check_groups(optimiser, parameters, groups);
  std::size_t tensors = 0;
  for (TreeLeaf& leaf : parameters)
    if (is_floating(leaf) && groups.of(tensors++).frozen) leaf.tensor = stop_gradient(leaf.tensor);
  return parameters;
}

}  // namespace reel::detail
