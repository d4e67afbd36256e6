// frontend/layers/initial_values.h — initial values of parameters, and checks of layers' arguments.
#pragma once

#include <cstdint>
#include <string_view>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Returns uniform random numbers in ±√(6 / (fan_in + fan_out)), so that values and gradients
/// neither grow nor shrink from layer to layer. Throws ArgumentError if a fan is negative or both
/// are zero.
/// Source: Glorot & Bengio (2010), eq. 16.
Tensor glorot_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out,
                      DType dtype = f32);

namespace detail {
/// Throws ArgumentError unless the dim is named and has one known size.
void check_parameter_dim(std::string_view layer, std::string_view role, const Dim& dim);
/// Throws DTypeError unless the dtype is floating.
void check_parameter_dtype(std::string_view layer, DType dtype);
/// Checks an input of a layer; role: "x" or "state.h". Throws ArgumentError if it is empty,
/// ShapeError if it lacks the dim, DTypeError if its dtype is not `dtype`, the parameters'.
void check_input(std::string_view layer, std::string_view role, const Tensor& x, const Dim& dim,
                 DType dtype);
/// Checks a part of a cell's state as check_input does. Also throws ShapeError if x and the part
/// each lack dims of the other, features aside.
void check_state(std::string_view cell, const Tensor& x, const Dim& in, std::string_view role,
                 const Tensor& state, const Dim& hidden, DType dtype);
/// Returns the initial state of a cell: zeros over dims and `hidden`.
Tensor zero_state(std::string_view cell, Dims dims, const Dim& hidden, DType dtype);
}  // namespace detail

}  // namespace reel
REEL_API_END
