// frontend/layers/initial_values.h — how parameters start.
#pragma once

#include <cstdint>
#include <string_view>

#include "reel/core/dim.h"
#include "reel/core/dtype.h"
#include "reel/core/tensor.h"

namespace reel {

/// Uniform in ±√(6 / (fan_in + fan_out)), so that neither values nor gradients grow or shrink from
/// layer to layer. Throws ArgumentError unless a fan is positive.
/// Source: Glorot & Bengio (2010), eq. 16.
Tensor glorot_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out,
                      DType dtype = f32);

namespace detail {
/// A dim of parameters: named, with one size that is known. Throws ArgumentError.
void check_parameter_dim(std::string_view layer, std::string_view role, const Dim& dim);
/// Throws DTypeError unless parameters can have that dtype.
void check_parameter_dtype(std::string_view layer, DType dtype);
/// What a layer is given: `role` is "x" or "state.h". Throws ShapeError when it lacks the dim,
/// DTypeError when its dtype is not that of the parameters.
void check_input(std::string_view layer, std::string_view role, const Tensor& x, const Dim& dim,
                 DType dtype);
/// The same for a part of a cell's state; and of x and the part one must have all dims of the
/// other, features aside. Throws ShapeError.
void check_state(std::string_view cell, const Tensor& x, const Dim& in, std::string_view role,
                 const Tensor& state, const Dim& hidden, DType dtype);
/// What a cell that has seen nothing knows.
Tensor zero_state(std::string_view cell, Dims dims, const Dim& hidden, DType dtype);
}  // namespace detail

}  // namespace reel
