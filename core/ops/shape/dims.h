// core/ops/shape/dims.h — ops that read or make Dims.
#pragma once

#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/dims/dim_env.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/fwd.h"
#include "reel/core/types/tensor.h"

namespace reel {

/// Throws DTypeError, ShapeError or ArgumentError if no dim can have these lengths. name: the
/// dim's, for messages.
void check_lengths(const std::string& name, const Tensor& lengths);
/// Return the largest and the smallest length; 0 without any lengths.
std::int64_t largest_length(const Tensor& lengths);
std::int64_t smallest_length(const Tensor& lengths);
/// Returns lengths as dims store them: i32, and 0 in their padding.
Tensor lengths_as_i32(const Tensor& lengths);
/// Returns the node of a dim with these lengths. Requires eager lengths. The caller has the only
/// reference.
Ref<DimNode> node_of_lengths(std::string name, const Tensor& lengths);

/// In a trace: returns a new symbol; a run of the graph determines its lengths.
Dim define_dim(const std::string& name, const Tensor& lengths);
/// Returns the lengths as an op without inputs (i32; a scalar for a dim with one size).
Tensor dim_lengths(const Dim& dim);
/// Returns a tensor without elements (boolean[none=0,dim]). Its type passes the dim between graphs.
Tensor dim_token(const Dim& dim);
/// Turns lengths that a body reads of outer dims into captures of the body, so that finished
/// entries read the lengths of a running one. Call it where the body is used. Appends to
/// `captured`. Returns the positions in `captured` of the lengths of dims in `kept`: finished
/// entries see these dims unchanged, and must read lengths that agree.
/// outside: the outer dims for dims of the body.
std::vector<std::size_t> capture_lengths(Graph& body, Tensors& captured, DimEnv outside,
                                         const Dims& kept);
/// Appends the record of dim_token(dim) to a graph.
ValueId append_dim_token(Graph& graph, const Dim& dim);

/// Returns `masked`, which is x without padding along the axes. If no entry of x is shorter than
/// others, `masked` is x itself: then returns a value of its own. A tape adds cotangents of it and
/// of x separately, as in a trace, where lengths are unknown.
Tensor apart_from(const Tensor& x, const std::vector<int>& axes, Tensor masked);

/// True if the dim's size is fixed in a trace, which is specialised on it.
bool is_static(const Dim& dim);
/// Returns the extent as a scalar (i64, in which products of sizes fit); the largest length of a
/// ragged dim.
Tensor extent_of(const Dim& dim);

/// True if the dim at an axis is ragged, and the type has all dims of its lengths.
bool has_its_lengths(const TensorType& type, int axis);
/// True if the dim needs a mask: it is ragged, x has all dims of its lengths, and lengths may
/// differ.
REEL_API bool is_masked(const TensorType& type, int axis);
/// True if some masked dim of the type has a length dim among the axes.
bool lengths_run_over(const TensorType& type, const std::vector<int>& axes);
/// True if some masked dim of the type is among the axes, or has a length dim among them. A sum
/// over the axes must first set padding to zero.
REEL_API bool reduces_padding(const TensorType& type, const std::vector<int>& axes);
/// Returns x with zeros in the padding of the dim at `axis`; other padding stays. Requires
/// is_masked(x.type(), axis).
Tensor mask_padding_along(const Tensor& x, int axis);

}  // namespace reel
