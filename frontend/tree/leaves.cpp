#include "reel/frontend/tree/leaves.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/types/dim_expression.h"

namespace reel::detail {
namespace {

bool is_alike(const TreeLeaf& a, const TreeLeaf& b) {
  return a.kind == b.kind && a.fixed == b.fixed && a.tensor.is_defined() == b.tensor.is_defined();
}

/// The leaves by path. The size and the keys of a container share the path of the container, so
/// each path has a counter.
using ByPath = std::map<std::pair<std::string, int>, const TreeLeaf*>;

ByPath by_path(const TreeLeaves& leaves, const std::vector<std::string>& paths) {
  std::map<std::string, int> counts;
  ByPath result;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    result[{paths[i], counts[paths[i]]++}] = &leaves[i];
  return result;
}

/// True for the size or a key of a container.
bool is_container(const TreeLeaf& leaf) { return leaf.fixed.is_of_container(); }

std::vector<LeafPair> matched(const TreeLeaves& a, const std::vector<std::string>& a_paths,
                              const TreeLeaves& b, const std::vector<std::string>& b_paths,
                              bool containers) {
  std::vector<LeafPair> result;
  std::vector<bool> used(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_container(a[i]) != containers) continue;
    std::size_t j = 0;
    while (j < b.size() &&
           (used[j] || b_paths[j] != a_paths[i] || is_container(b[j]) != containers))
      ++j;
    if (j < b.size()) used[j] = true;
    result.push_back({a_paths[i], &a[i], j < b.size() ? &b[j] : nullptr});
  }
  for (std::size_t j = 0; j < b.size(); ++j)
    if (!used[j] && is_container(b[j]) == containers)
      result.push_back({b_paths[j], nullptr, &b[j]});
  return result;
}

}  // namespace

bool same_structure(const TreeLeaves& a, const TreeLeaves& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TreeLeaf& x, const TreeLeaf& y) {
                      return x.kind == y.kind && (x.fixed == y.fixed || !is_container(x));
                    });
}

std::vector<LeafPair> pair_leaves(const TreeLeaves& a, const std::vector<std::string>& a_paths,
                                  const TreeLeaves& b, const std::vector<std::string>& b_paths) {
  std::vector<LeafPair> pairs = matched(a, a_paths, b, b_paths, false);
  for (const LeafPair& pair : pairs)
    if (!pair.a || !pair.b) return pairs;
  for (const LeafPair& pair : matched(a, a_paths, b, b_paths, true))
    if (!pair.a || !pair.b || pair.a->fixed != pair.b->fixed) pairs.push_back(pair);
  return pairs;
}

std::string dims_differ(const TensorType& a, const TensorType& b) {
  const std::string reason = str(a) == str(b) ? not_one_dim(a.dims(), b.dims()) : "";
  return reason.empty() ? "dims differ" : "dims differ: " + reason;
}

std::string paths_of_empty(const TreeLeaves& leaves, const PathsFn& paths) {
  std::string result;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].kind == TreeLeaf::Kind::tensor && !leaves[i].tensor.is_defined())
      result += str(result.empty() ? "" : ", ", paths()[i]);
  return result;
}

bool is_tensor(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
         !leaf.tensor.type().is_list();
}

bool is_sized_dim(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::dim && leaf.dim.is_named() && !leaf.dim.is_undefined();
}

int depth_of(const Dim& dim) {
  int depth = 0;
  for (const Dim& of : dim.length_dims()) depth = std::max(depth, 1 + depth_of(of));
  if (const DimExpression* expression = expression_of(dim))
    for (const Dim& of : expression->operands) depth = std::max(depth, 1 + depth_of(of));
  return depth;
}

void check_same_kinds(const char* function, const TreeLeaves& a, const char* in_a,
                      const TreeLeaves& b, const char* in_b, const PathsFn& paths) {
  const auto kind_of = [](const TreeLeaf& leaf) {
    return std::tuple(leaf.kind, leaf.tensor.is_defined(), is_tensor(leaf));
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size() && i < b.size() && a[i].fixed == b[i].fixed && kind_of(a[i]) == kind_of(b[i]))
      continue;
    const std::vector<std::string> names = paths();
    throw StructureError(str(function, ": ", names[std::min(i, names.size() - 1)], " is ",
                             i < a.size() ? print(a[i]) : "absent", ' ', in_a, ", and ",
                             i < b.size() ? print(b[i]) : "absent", ' ', in_b));
  }
}

bool is_floating(const TreeLeaf& leaf) { return is_tensor(leaf) && is_float(leaf.tensor.dtype()); }

std::string print(const TreeLeaf& leaf) {
  switch (leaf.kind) {
    case TreeLeaf::Kind::tensor:
      return leaf.tensor.is_defined() ? str(leaf.tensor.type()) : "an empty Tensor";
    case TreeLeaf::Kind::dim:
      return str("Dim ", leaf.dim);
    case TreeLeaf::Kind::none:
      return "None";
    case TreeLeaf::Kind::fixed:
      return leaf.fixed.text();
  }
  return {};
}

std::string structure_differences(const TreeLeaves& expected, const PathsFn& expected_paths,
                                  const TreeLeaves& leaves, const PathsFn& paths,
                                  const std::string& role) {
  if (std::equal(expected.begin(), expected.end(), leaves.begin(), leaves.end(), is_alike))
    return {};
  const std::vector<std::string> names = expected_paths();
  const ByPath others = by_path(leaves, paths());
  std::map<std::string, int> counts;
  std::string lines;
  // Leaves at a path of one tree only lie below a container with other sizes or keys. That
  // difference is reported itself.
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto other = others.find({names[i], counts[names[i]]++});
    if (other == others.end() || is_alike(expected[i], *other->second)) continue;
    lines += str("\n  ", names[i].empty() ? "the tree" : names[i], ": ", print(expected[i]), ", ",
                 role, ' ', print(*other->second));
  }
  return lines;
}

}  // namespace reel::detail
