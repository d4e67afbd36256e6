// core/dims/same_name.h — one_dim_hint, the hint in errors about two Dims of one name.
#pragma once

#include <string>

#include "reel/core/types/tensor_type.h"

namespace reel {

/// Returns "the two called time are not one Dim" if each list has a named dim that the other lacks,
/// and both dims have one name; otherwise "".
std::string not_one_dim(const Dims& a, const Dims& b);

/// Returns not_one_dim() with the repair, as the end of a message: "; the two called ...: use one
/// Dim for both, ..."; otherwise "".
std::string one_dim_hint(const Dims& a, const Dims& b);

}  // namespace reel
