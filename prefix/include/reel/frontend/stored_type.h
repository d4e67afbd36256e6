// frontend/stored_type.h — the type of the tensor that an array in a file becomes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reel/core/tensor_type.h"
#include "reel/frontend/stored_elements.h"

namespace reel {

/// The type of a stored array, its axes called as `dims`, or plain if there are none. An undefined
/// dim is a name: a dim of that name and the stored size takes its place.
///
/// Throws, beginning with `name`, DTypeError for elements that have no counterpart, ShapeError for
/// dims that do not fit.
TensorType stored_type(StoredDType stored, const std::vector<std::int64_t>& sizes, const Dims& dims,
                       const std::string& name);

/// As stored: f16[3,4].
std::string print_stored(StoredDType stored, const std::vector<std::int64_t>& sizes);

}  // namespace reel
