// distributed/all_reduce.h — adds arrays of all ranks in the tree of their shards.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dtype.h"
#include "reel/distributed/transport.h"

REEL_API_BEGIN
namespace reel {

enum class Reduction : std::uint8_t { sum, max };

/// The arrays of one dtype that ranks reduce together.
struct ArraysToReduce {
  DType dtype;  ///< of numbers
  Reduction how;
  int shards;  ///< leaves of the tree
  /// By node of this rank (nodes_within() of its shards), then by array.
  std::vector<std::vector<const char*>> nodes;
  std::vector<char*> results;       ///< by array; no operand overlaps with them
  std::vector<std::int64_t> sizes;  ///< elements, by array
};

/// Writes the reduction over all shards of all ranks into the results. It depends on the values of
/// the shards and their number alone, not on the number of ranks.
///
/// Arrays are joined to buckets of some MiB. Each rank reduces a piece of every bucket: all-to-all,
/// then all-gather. Small buckets are gathered by all ranks, which all reduce them. Requires that
/// the caller holds transport.lock() and has checked the call.
void all_reduce(Transport& transport, const ArraysToReduce& arrays);

/// Writes, on rank r, the sum over all ranks of array r of `arrays`, in the tree of ranks. arrays:
/// one behind the other for each rank, of `size` elements. Requires as above.
void reduce_scatter(Transport& transport, DType dtype, const char* arrays, char* result,
                    std::int64_t size);

}  // namespace reel
REEL_API_END
