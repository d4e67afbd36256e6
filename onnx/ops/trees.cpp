// Ops of ai.onnx.ml on numbers: ensembles of decision trees, and simple ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/registry.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

using Integers = std::vector<std::int64_t>;

/// How a node compares a feature with its split. Has the numbers of the attribute.
enum class Branch { leq, lt, gte, gt, eq, neq, member };
constexpr std::int64_t kBranches = 7;

std::vector<double> numbers_of_attribute(const Call& call, const std::string& name) {
  const ModeScope aside({});
  return cast(call.tensor_attribute(name).tensor, f64).to_vector<double>();
}

/// All trees. One numbering counts the nodes of all trees, then their leaves.
struct Trees {
  Integers features, when_true, when_false, modes, missing, roots;
  std::vector<double> splits, weights;
  Integers targets;                          ///< of leaves
  std::vector<std::vector<double>> members;  ///< of each node; empty unless it tests for them
  std::int64_t depth = 0;                    ///< the most nodes on a way to a leaf
};

/// Returns the depth below a node. Throws ArgumentError for a way that does not end.
std::int64_t depth_of(const Call& call, const Trees& trees) {
  const auto nodes = static_cast<std::int64_t>(trees.features.size());
  Integers level = trees.roots;
  std::int64_t depth = 0;
  while (!level.empty()) {
    if (++depth > nodes) call.refuse("a way through a tree does not end");
    Integers next;
    for (const std::int64_t node : level)
      for (const std::int64_t child : {trees.when_true[static_cast<std::size_t>(node)],
                                       trees.when_false[static_cast<std::size_t>(node)]})
        if (child < nodes) next.push_back(child);
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    level = std::move(next);
  }
  return depth;
}

/// Reads the sets of nodes that test for members: in their order, each ended by NaN.
void read_members(const Call& call, Trees& trees) {
  std::vector<double> given;
  if (call.has_attribute("membership_values"))
    given = numbers_of_attribute(call, "membership_values");
  std::size_t at = 0;
  trees.members.resize(trees.modes.size());
  for (std::size_t i = 0; i < trees.modes.size(); ++i) {
    if (trees.modes[i] != static_cast<std::int64_t>(Branch::member)) continue;
    for (; at < given.size() && !std::isnan(given[at]); ++at) trees.members[i].push_back(given[at]);
    ++at;
  }
}

Trees trees_of(const Call& call) {
  Trees trees;
  trees.features = call.integers("nodes_featureids");
  trees.splits = numbers_of_attribute(call, "nodes_splits");
  trees.weights = numbers_of_attribute(call, "leaf_weights");
  trees.targets = call.integers("leaf_targetids");
  trees.roots = call.integers("tree_roots");
  trees.missing = call.integers("nodes_missing_value_tracks_true");
  for (const double mode : numbers_of_attribute(call, "nodes_modes"))
    trees.modes.push_back(mode >= 0 && mode < kBranches ? static_cast<std::int64_t>(mode) : -1);
  const std::size_t nodes = trees.features.size();
  const auto count = static_cast<std::int64_t>(nodes);
  const auto leaves = static_cast<std::int64_t>(trees.weights.size());
  trees.missing.resize(nodes);
  const auto children = [&](const char* ids, const char* flags) {
    Integers all = call.integers(ids);
    const Integers are_leaves = call.integers(flags);
    if (all.size() != nodes || are_leaves.size() != nodes) call.refuse(str(ids, " does not fit"));
    for (std::size_t i = 0; i < nodes; ++i) {
      if (all[i] < 0 || all[i] >= (are_leaves[i] ? leaves : count))
        call.refuse(str(ids, " names ", all[i], ", which is not there"));
      if (are_leaves[i]) all[i] += count;
    }
    return all;
  };
  trees.when_true = children("nodes_truenodeids", "nodes_trueleafs");
  trees.when_false = children("nodes_falsenodeids", "nodes_falseleafs");
  const auto is_within = [](const Integers& list, std::int64_t limit) {
    return std::all_of(list.begin(), list.end(),
                       [&](std::int64_t number) { return number >= 0 && number < limit; });
  };
  if (trees.splits.size() != nodes || trees.modes.size() != nodes ||
      static_cast<std::int64_t>(trees.targets.size()) != leaves || trees.roots.empty() ||
      !is_within(trees.roots, count) || !is_within(trees.modes, kBranches) ||
      !is_within(trees.targets, call.integer("n_targets", 1)))
    call.refuse("the lists of nodes and leaves do not fit each other");
  trees.depth = depth_of(call, trees);
  read_members(call, trees);
  return trees;
}

/// Returns true where a feature belongs to the set of its node. at: the nodes, [rows, trees].
Tensor is_member(const Call& call, const Trees& trees, const Tensor& feature, const Tensor& at) {
  std::size_t most = 1;
  for (const auto& set : trees.members) most = std::max(most, set.size());
  check_bytes(call.node(),
              8. * static_cast<double>(most) * static_cast<double>(trees.members.size()));
  std::vector<double> sets;
  for (const auto& set : trees.members)
    for (std::size_t i = 0; i < most; ++i)
      sets.push_back(i < set.size() ? set[i] : std::numeric_limits<double>::quiet_NaN());
  const auto nodes = static_cast<std::int64_t>(trees.members.size());
  const Tensor table =
      tensor(sets, Dims{Dim(nodes), Dim(static_cast<std::int64_t>(most))}, feature.dtype());
  const Tensor rows = gather(table, at, 0);
  Dims dims = feature.dims();
  dims.emplace_back(1);
  return any(equal(rows, reshape(feature, dims)), Axes(-1));
}

/// Returns true where a node sends a feature to its first child.
Tensor goes_to_first(const Call& call, const Trees& trees, const Tensor& feature,
                     const Tensor& at) {
  const Tensor split = gather(tensor(trees.splits, {}, feature.dtype()), at, 0);
  const Tensor mode = gather(tensor(trees.modes), at, 0);
  Tensor result;
  for (std::int64_t i = 0; i < kBranches; ++i) {
    if (!std::count(trees.modes.begin(), trees.modes.end(), i)) continue;
    const auto compared = [&] {
      switch (static_cast<Branch>(i)) {
        case Branch::leq:
          return feature <= split;
        case Branch::lt:
          return feature < split;
        case Branch::gte:
          return feature >= split;
        case Branch::gt:
          return feature > split;
        case Branch::eq:
          return equal(feature, split);
        case Branch::neq:
          return not_equal(feature, split);
        default:
          return is_member(call, trees, feature, at);
      }
    };
    const Tensor here = equal(mode, i) && compared();
    result = result.is_defined() ? result || here : here;
  }
  const Tensor of_missing = equal(gather(tensor(trees.missing), at, 0), 1);
  return where(isnan(feature), of_missing, result);
}

/// Returns the leaf of each tree that a row reaches: [rows, trees].
Tensor leaves_of(const Call& call, const Trees& trees, const Tensor& x) {
  const auto nodes = static_cast<std::int64_t>(trees.features.size());
  const Tensor roots = tensor(trees.roots);
  Tensor at = broadcast_to(roots, Dims{x.dim(0), roots.dim(0)});
  for (std::int64_t level = 0; level < trees.depth; ++level) {
    const Tensor node = minimum(at, nodes - 1);  // a leaf stays where it is
    const Tensor feature = gather(x, gather(tensor(trees.features), node, 0), 1, {.batch_dims = 1});
    const Tensor next =
        where(goes_to_first(call, trees, feature, node), gather(tensor(trees.when_true), node, 0),
              gather(tensor(trees.when_false), node, 0));
    at = where(at < nodes, next, at);
  }
  return at - nodes;
}

Values run_tree_ensemble(const Call& call) {
  const Tensor& x = call.tensor(0);
  if (x.rank() != 2) call.refuse(str("takes rows of features, got ", x.type()));
  const Trees trees = trees_of(call);
  const Tensor leaves = leaves_of(call, trees, x);
  const Dim targets(call.integer("n_targets", 1));
  Dims dims = leaves.dims();
  dims.emplace_back(1);
  const Tensor weights = reshape(gather(tensor(trees.weights, {}, x.dtype()), leaves, 0), dims);
  const Tensor is_target =
      equal(reshape(gather(tensor(trees.targets), leaves, 0), dims), range(targets, i64));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto among = [&](double otherwise) { return where(is_target, weights, otherwise); };
  Tensor y;
  switch (call.integer("aggregate_function", 1)) {
    case 0:
      y = sum(among(0.), 1) / static_cast<double>(trees.roots.size());
      break;
    case 1:
      y = sum(among(0.), 1);
      break;
    case 2:
      y = min(among(kInfinity), 1);
      break;
    case 3:
      y = max(among(-kInfinity), 1);
      break;
    default:
      call.refuse("the aggregate_function is not supported");
  }
  y = where(isinf(y), 0., y);  // a target without a leaf
  switch (call.integer("post_transform", 0)) {
    case 0:
      return {call.like(0, y)};
    case 1:
      return {call.like(0, softmax(y, Axes(1)))};
    case 2:
      return {call.like(0, sigmoid(y))};
    default:
      call.refuse("the post_transform is not supported: it is NONE, SOFTMAX or LOGISTIC");
  }
}

Values run_binarizer(const Call& call) {
  const Tensor& x = call.tensor(0);
  return {call.like(0, cast(x > call.number("threshold", 0), x.dtype()))};
}

/// Reads elements of the last axis.
Values run_array_feature_extractor(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Tensor at = reshape(call.tensor(1), {-1});
  const Tensor y = gather(x, at, x.rank() - 1);
  return {call.like(0, x.rank() == 1 ? reshape(y, {1, -1}) : y)};
}

const Rule kRules[] = {
    {"ArrayFeatureExtractor", run_array_feature_extractor, kMachineLearning, 1, 5},
    {"Binarizer", run_binarizer, kMachineLearning, 1, 5},
    {"TreeEnsemble", run_tree_ensemble, kMachineLearning, 5, 5},
};

}  // namespace

std::span<const Rule> tree_rules() { return kRules; }

}  // namespace reel::imported
