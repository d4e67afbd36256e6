// frontend/tree/leaves.h — queries on the leaves of trees, for the library's own error messages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/leaf.h"

REEL_API_BEGIN
namespace reel::detail {

/// True for a floating tensor that is not a list. Optimisers update these leaves, and norms count
/// them.
bool is_floating(const TreeLeaf& leaf);

/// True for a tensor that is neither empty nor a list.
bool is_tensor(const TreeLeaf& leaf);
/// True for a named Dim that has a size.
bool is_sized_dim(const TreeLeaf& leaf);

/// Returns the number of steps from the dim over the dims of lengths, and over the dims that it was
/// computed from, to one without either.
int depth_of(const Dim& dim);

/// Returns the leaf as messages print it: f32[2,3], Dim batch, None, or the value of a fixed leaf.
std::string print(const TreeLeaf& leaf);

using PathsFn = std::function<std::vector<std::string>()>;

/// Returns the paths of the empty Tensors among the leaves, separated by commas.
std::string paths_of_empty(const TreeLeaves& leaves, const PathsFn& paths);

/// Returns the differences in structure between two trees of one type: container sizes, keys, empty
/// tensors, and values of fixed leaves. One line each, as "\n  layers: of size 2, ROLE of size 1";
/// empty if the structures agree. Types of tensors are not compared.
std::string structure_differences(const TreeLeaves& expected, const PathsFn& expected_paths,
                                  const TreeLeaves& leaves, const PathsFn& paths,
                                  const std::string& role);

/// True if both trees have the same containers of the same sizes and keys, and the same kinds of
/// leaves. Leaves at the same position then have the same path.
bool same_structure(const TreeLeaves& a, const TreeLeaves& b);

/// Throws StructureError unless both trees, of one type, have the same kinds of leaves with the
/// same fixed values: "where_nested: state.x is f32[2] in a, and an empty Tensor in b". Empty
/// Tensors, tensors and lists are three kinds.
void check_same_kinds(const char* function, const TreeLeaves& a, const char* in_a,
                      const TreeLeaves& b, const char* in_b, const PathsFn& paths);

/// Returns an error's reason for two types with different dims: "dims differ", and if both print
/// alike, why they are not equal.
std::string dims_differ(const TensorType& a, const TensorType& b);

/// The leaves at one path of two trees; null for a tree that has no leaf there.
struct LeafPair {
  std::string path;
  const TreeLeaf *a, *b;
};
/// Returns the leaves of two trees of one type, matched by path; leaves that only `b` has come
/// last. Sizes and keys of containers are included only if the trees differ in nothing else.
std::vector<LeafPair> pair_leaves(const TreeLeaves& a, const std::vector<std::string>& a_paths,
                                  const TreeLeaves& b, const std::vector<std::string>& b_paths);

}  // namespace reel::detail
REEL_API_END
