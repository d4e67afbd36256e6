// frontend/layers/made_parameter.h — a check that a layer has its parameters.
#pragma once

#include <string_view>

#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace detail {

/// Returns the dtype of a parameter of a layer. Throws ArgumentError if it is an empty Tensor: the
/// layer was not made by init, or it was moved from.
DType made_dtype(std::string_view layer, std::string_view parameter, const Tensor& value);

}  // namespace detail
}  // namespace reel
