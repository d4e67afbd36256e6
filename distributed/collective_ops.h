// distributed/collective_ops.h — the ops in which all ranks take part, on lists of tensors.
#pragma once

#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"
#include "reel/distributed/all_reduce.h"

REEL_API_BEGIN
namespace reel::detail {

// All ranks must call these with operands of the same types, in the same order. In eager mode a
// call runs at once; in a trace it is recorded, with an effect: all executors run collectives in
// the order of the program and drop none. Gradients of any order exist for floating operands.
//
// paths: the operands' names in messages; may be empty. Throw DTypeError or StructureError for
// operands that cannot be sent, DistributedError if ranks differ or are late.

using OperandPaths = std::vector<std::string>;

/// Throws DTypeError if a tensor is boolean.
void check_numbers(const char* function, const Tensors& tensors, const OperandPaths& paths);

/// Returns the sums or maxima over all ranks. The tree of ranks fixes the order of additions.
Tensors all_reduce(const Tensors& tensors, Reduction how, const OperandPaths& paths);
/// Returns the sums over all shards, in the tree of shards. nodes: for each of this rank's nodes
/// (nodes_within()) the sums of its shards; types may not differ between nodes.
Tensors all_reduce_nodes(const std::vector<Tensors>& nodes, int shards, const OperandPaths& paths);
/// Returns the tensors of one rank on all ranks. The cotangent of the root is the sum over all
/// ranks; the other ranks have zeros.
Tensors broadcast_from(int root, const Tensors& tensors, const OperandPaths& paths);
/// Returns the tensors of all ranks side by side, along a new leading axis; named if x is.
Tensor gather_ranks(const Tensor& x, const std::string& path);
/// Returns the rows of all ranks, in the order of the ranks, which may have different numbers of
/// them. x: plain sizes. A trace does not know the number of rows, unless there is one rank: then
/// x.
Tensor gather_rows(const Tensor& x, const std::string& path);
/// Returns, on rank r, the sum over all ranks of element r along the leading axis, which has an
/// element for each rank. Requires numbers.
Tensor scatter_ranks(const Tensor& x, const std::string& path);

}  // namespace reel::detail
REEL_API_END
