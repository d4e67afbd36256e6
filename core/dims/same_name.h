// core/dims/same_name.h — hints in errors about dims: two Dims of one name, a dim that a tensor
// lacks.
#pragma once

#include <string>

#include "reel/core/types/tensor_type.h"

namespace reel {

/// Returns "the two called time are not one Dim" if each list has a named dim that the other lacks,
/// and both dims have one name; otherwise "".
std::string not_one_dim(const Dims& a, const Dims& b);

/// Returns not_one_dim() with the repair, as the end of a message: "; the two called ...: use one
/// Dim for both, ...". Tells if a dim of one list is computed from one of the other, as time - 2
/// is. Otherwise "".
std::string one_dim_hint(const Dims& a, const Dims& b);

/// Returns the repair for a type that lacks a named dim, as the end of a message: one_dim_hint(),
/// or that the type has plain sizes, or that its only dim of this size can be renamed; otherwise
/// "".
std::string missing_dim_hint(const TensorType& type, const Dim& dim);

}  // namespace reel
