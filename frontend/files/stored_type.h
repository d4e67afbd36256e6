// frontend/files/stored_type.h — stored_type, the type of the tensor that a stored array becomes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"
#include "reel/frontend/files/stored_elements.h"

REEL_API_BEGIN
namespace reel {

/// Returns the type of a stored array with the axes `dims`, or plain axes if dims are empty. An
/// undefined dim gives a name only: it is replaced by a dim of the same name with the stored size.
///
/// Throws DTypeError for elements without a counterpart, ShapeError if dims do not fit; messages
/// begin with `name`.
TensorType stored_type(StoredDType stored, const std::vector<std::int64_t>& sizes, const Dims& dims,
                       const std::string& name);

/// Prints the type as stored: f16[3,4].
std::string print_stored(StoredDType stored, const std::vector<std::int64_t>& sizes);

}  // namespace reel
REEL_API_END
