// core/ops/shape/known_dims.h — dims that a trace defines from the lengths of another dim.
#pragma once

#include <optional>
#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"

namespace reel {

/// Returns the dim if a record reads the lengths of one; null for other records.
REEL_API const Dim* dim_of_lengths(const OpRecord& record);
/// Returns the name of the dim that a record makes from lengths; null for other records.
const std::string* name_of_defined_dim(const OpRecord& record);
/// Returns the dim that such a record makes in a run. attrs: its attributes, with dims of the run.
/// Throws as the constructor of Dim does.
Dim dim_defined_by(const Attrs& attrs, const Tensor& lengths);

}  // namespace reel
