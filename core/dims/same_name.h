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
/// Dim for both, ...". a, b: dims of two tensors. Also tells if a dim of one list is computed from
/// a dim of the other, as time - 2 is, or if both are computed from one dim. Otherwise "".
std::string one_dim_hint(const Dims& a, const Dims& b);

/// Returns the repair for a tensor x with `dims` but without `dim`, as the end of a message: if x
/// has another Dim of the name, one Dim for both; if x has a dim computed from it, as after a conv,
/// that dim: "; pass x.dim("time"), which is time-2=3". Otherwise "".
std::string lacking_dim_hint(const Dim& dim, const Dims& dims);

/// Returns the repair for a type that lacks a named dim, as the end of a message:
/// lacking_dim_hint(), or that the type has plain sizes, or that its only dim of this size can be
/// renamed; otherwise "".
std::string missing_dim_hint(const TensorType& type, const Dim& dim);

}  // namespace reel
