// frontend/leaves.h — questions about the leaves of trees, for the library's own messages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reel/core/leaf.h"

namespace reel::detail {

/// Whether it is a floating tensor: what optimisers update, and what norms count. Lists are none.
bool is_floating(const TreeLeaf& leaf);

/// As messages say it: f32[2,3], Dim batch, None, the value of a leaf that is no tensor.
std::string print(const TreeLeaf& leaf);

using PathsFn = std::function<std::vector<std::string>()>;

/// Returns the paths of the empty Tensors among the leaves, with commas between them.
std::string paths_of_empty(const TreeLeaves& leaves, const PathsFn& paths);

/// Where two trees of one type have other structures: sizes, keys, empty tensors, values that are
/// no tensors. A line for each, as "\n  layers: of size 2, ROLE of size 1"; empty where they agree.
/// Types of tensors do not count.
std::string structure_differences(const TreeLeaves& expected, const PathsFn& expected_paths,
                                  const TreeLeaves& leaves, const PathsFn& paths,
                                  const std::string& role);

/// The same containers of the same sizes and keys, and the same kinds of leaves: leaves at one
/// position have one path.
bool same_structure(const TreeLeaves& a, const TreeLeaves& b);

/// What messages say of two types whose dims differ; where they print alike, why they differ still.
std::string dims_differ(const TensorType& a, const TensorType& b);

/// A leaf of either of two trees; null where a tree has none at that path.
struct LeafPair {
  std::string path;
  const TreeLeaf *a, *b;
};
/// The leaves of two trees of one type, matched by their paths: those of the first, then what only
/// the second has. Sizes and keys of containers are left out, unless the trees differ in nothing
/// else.
std::vector<LeafPair> pair_leaves(const TreeLeaves& a, const std::vector<std::string>& a_paths,
                                  const TreeLeaves& b, const std::vector<std::string>& b_paths);

}  // namespace reel::detail
