// frontend/layers/initial_values.h — initial values of parameters, and checks of layers' arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Makes the initial values of a weight, which `init` of layers takes. dims: of the weight. fan_in,
/// fan_out: how many inputs an element of the result has, and how many results an input has. Cells
/// call it once for each gate. A function of your own is one too:
///
///   Linear::init(in, out, {.weight = he_normal});
///   LstmCell::init(in, hidden, {.recurrent_weight = orthogonal});
///   Linear::init(in, out, {.weight = [](const auto&... about) { return 0.1 * orthogonal(about...);
///   }});
using InitialValues =
    std::function<Tensor(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype)>;

/// Returns uniform random numbers in ±√(6 / (fan_in + fan_out)), so that values and gradients
/// neither grow nor shrink from layer to layer. Throws ArgumentError if a fan is negative or both
/// are zero.
/// Source: Glorot & Bengio (2010), eq. 16.
Tensor glorot_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out,
                      DType dtype = f32);
/// Returns normal random numbers of variance 2 / (fan_in + fan_out), which throws alike.
/// Source: Glorot & Bengio (2010), eq. 12.
Tensor glorot_normal(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out,
                     DType dtype = f32);
/// Return normal or uniform random numbers of variance 2 / fan_in, for weights before a relu, as
/// PyTorch's kaiming_normal_. Throw ArgumentError unless fan_in is positive.
/// Source: He et al. (2015), eq. 10.
Tensor he_normal(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype = f32);
Tensor he_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype = f32);
/// Return normal or uniform random numbers of variance 1 / fan_in. Throw ArgumentError unless
/// fan_in is positive. Source: LeCun et al. (1998), section 4.6.
Tensor lecun_normal(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype = f32);
Tensor lecun_uniform(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out,
                     DType dtype = f32);
/// Returns a random matrix with orthogonal rows or columns, whichever are fewer, of length 1; all
/// these matrices are equally likely. More than two dims count as a matrix with the last dim
/// as columns. Computed in f64. Throws ArgumentError for fewer dims. The fans are not read.
/// Source: Saxe, McClelland & Ganguli (2013), section 3.1.
Tensor orthogonal(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out, DType dtype = f32);
/// Returns a matrix with 1 on the diagonal and 0 elsewhere. Throws ArgumentError unless there are
/// two dims. The fans are not read. Source: Le, Jaitly & Hinton (2015), for recurrent weights.
Tensor identity_matrix(const Dims& dims, std::int64_t fan_in, std::int64_t fan_out,
                       DType dtype = f32);

namespace detail {
/// Returns the values of a weight, by default from glorot_uniform. Throws ShapeError or DTypeError
/// if `values` returns another type.
Tensor initial_weight(std::string_view layer, const InitialValues& values, const Dims& dims,
                      std::int64_t fan_in, std::int64_t fan_out, DType dtype);
/// Returns the weight {in, gate} of a cell: the values of each gate one behind another.
Tensor weight_of_gates(std::string_view cell, const InitialValues& values, const Dim& in,
                       const Dim& gate, std::int64_t gates, DType dtype);
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
