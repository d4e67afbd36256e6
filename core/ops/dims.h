// core/ops/dims.h — ops that read or make Dims.
#pragma once

#include <string>

#include "reel/core/dim.h"
#include "reel/core/dim_env.h"
#include "reel/core/fwd.h"
#include "reel/core/tensor.h"

namespace reel {

/// Throws DTypeError, ShapeError or ArgumentError when lengths cannot make a dim of that name.
void check_lengths(const std::string& name, const Tensor& lengths);
/// Of no lengths at all: 0.
std::int64_t largest_length(const Tensor& lengths);
std::int64_t smallest_length(const Tensor& lengths);
/// As a dim keeps them: i32, and 0 in their padding.
Tensor lengths_as_i32(const Tensor& lengths);
/// The node of a dim with these lengths, which are known; nobody else holds it yet.
Ref<DimNode> node_of_lengths(std::string name, const Tensor& lengths);

/// In a trace: a new symbol whose lengths a run of the graph will know.
Dim define_dim(const std::string& name, const Tensor& lengths);
/// The lengths as an op without inputs (i32; a scalar for a dim with one size).
Tensor dim_lengths(const Dim& dim);
/// A tensor without elements (boolean[none=0,dim]) whose type carries the dim: hands a dim from
/// graph to graph.
Tensor dim_token(const Dim& dim);
TensorType token_type(const Dim& dim);
/// Lengths that a body asks for, of dims that are known around it, become captures of the body, so
/// that ended entries see a live one's. Called where the body is used; adds to `captured`.
/// outside: what dims of the body are called there.
void capture_lengths(Graph& body, Tensors& captured, DimEnv outside);
/// Adds the record of dim_token(dim) to a graph.
ValueId append_dim_token(Graph& graph, const Dim& dim);

/// `masked`, x without padding along the axes, or a value of its own in its place where no entry of
/// x is shorter than others and nothing had to be masked: a tape then adds up what comes to it and
/// to x as in a trace, which knows no lengths.
Tensor apart_from(const Tensor& x, const std::vector<int>& axes, Tensor masked);

/// Returns the extent as a scalar (i64, in which products of sizes fit); of a ragged dim the
/// longest.
Tensor extent_of(const Dim& dim);

/// True if the dim at an axis is ragged, and the type has all dims of its lengths.
bool has_its_lengths(const TensorType& type, int axis);
/// A dim of x that needs a mask: ragged, with all dims of its lengths in x.
bool is_masked(const TensorType& type, int axis);
/// Some masked dim of the type has a length dim among the axes.
bool lengths_run_over(const TensorType& type, const std::vector<int>& axes);
/// Some masked dim of the type is among the axes, or has a length dim among them: a sum over them
/// must select zeros first.
bool reduces_padding(const TensorType& type, const std::vector<int>& axes);

}  // namespace reel
