// core/base/update_mark.h — marks the places of ops of an optimiser's update, which pictures draw
// as one box.
#pragma once

#include <string_view>

#include "reel/core/base/source.h"

namespace reel {

/// Returns the place `source`, marked as part of an update of the optimiser `name`. The lines are
/// the same. name: must live as long as the process.
SourceId in_update_of(SourceId source, std::string_view name);
/// Returns the name of the optimiser; empty for ops outside of updates, and in gradients of
/// updates.
std::string_view update_of(SourceId source);

}  // namespace reel
