// frontend/optimisers/parameter_group.h — ParameterGroup, some of the parameters of an optimiser,
// with options of their own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/tree/leaves.h"

REEL_API_BEGIN
namespace reel {

/// Some of the parameters of an optimiser, with options of their own. A parameter belongs to the
/// first group that contains it.
struct ParameterGroup {
  /// Returns true for a parameter of the group, given its path in the tree ("encoder.bias") and its
  /// value. Called once for each floating tensor, when the optimiser is made.
  std::function<bool(const std::string& path, const Tensor& parameter)> contains{};
  double rate = 1;                       ///< times the learning rate
  std::optional<double> weight_decay{};  ///< in place of the optimiser's, which must have one
  /// True if no step changes the parameters of the group: Optimiser tells the rest. Requires that
  /// rate and weight_decay are left out.
  bool frozen = false;
};

namespace detail {

/// The options of one parameter.
struct LeafOptions {
  double rate = 1;
  double weight_decay = 0;
  bool frozen = false;
  bool operator==(const LeafOptions&) const = default;
};

/// The options that an optimiser has for each floating tensor of the parameters, in their order. A
/// tree; its values are part of a trace's signature.
struct GroupOptions {
  LeafOptions without_groups{};
  std::vector<LeafOptions> of_tensors{};  ///< empty for an optimiser without groups
  const LeafOptions& of(std::size_t tensor) const {
    return of_tensors.empty() ? without_groups : of_tensors[tensor];
  }
};

/// weight_decay: the optimiser's; nullopt if it has none. Throws ArgumentError for options out of
/// range, for a frozen group with a rate or a weight decay, for a group without parameters, and for
/// parameters without a floating tensor.
GroupOptions group_options(const char* optimiser, const TreeLeaves& parameters,
                           const PathsFn& paths, const std::vector<ParameterGroup>& groups,
                           std::optional<double> weight_decay);
/// Throws StructureError if the parameters have another number of floating tensors than those that
/// the groups were made for.
void check_groups(const char* optimiser, const TreeLeaves& parameters, const GroupOptions& groups);
/// Returns the parameters with stop_gradient of the frozen ones. Throws as check_groups does.
TreeLeaves stop_frozen_gradients(const char* optimiser, TreeLeaves parameters,
                                 const GroupOptions& groups);

}  // namespace detail
}  // namespace reel
REEL_API_END
