#include "reel/distributed/collective_trees.h"

#include <algorithm>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/distributed/shard_tree.h"

namespace reel::detail {
namespace {

/// Finds the places of the IndexedSlices among the tensors of a tree.
struct FindSlices : TreeReader {
  std::vector<std::size_t> found;
  std::size_t tensors = 0;
  void tensor(const Tensor&) override { ++tensors; }
  void array(const TensorArray&) override { ++tensors; }
  using TreeReader::part;
  void part(const IndexedSlices&) override { found.push_back(tensors); }
};

/// The tensors of a tree that are sent as they are: without empty ones, and without IndexedSlices.
class Dense {
 public:
  explicit Dense(const TreeTensors& tree) {
    for (std::size_t i = 0; i < tree.tensors.size(); ++i) {
      const auto is_of = [&](std::size_t slices) { return slices <= i && i < slices + 3; };
      if (tree.tensors[i].is_defined() &&
          std::none_of(tree.slices.begin(), tree.slices.end(), is_of))
        places_.push_back(i);
    }
  }
  template <class T>
  std::vector<T> of(const std::vector<T>& all) const {
    std::vector<T> result;
    for (const std::size_t i : places_) result.push_back(all[i]);
    return result;
  }
  void put(const Tensors& tensors, Tensors& into) const {
    for (std::size_t k = 0; k < places_.size(); ++k) into[places_[k]] = tensors[k];
  }

 private:
  std::vector<std::size_t> places_;
};

void gather_slices(const TreeTensors& tree, Tensors& result) {
  for (const std::size_t i : tree.slices)
    for (const std::size_t place : {i, i + 1})
      if (result[place].is_defined()) result[place] = gather_rows(result[place], tree.paths[place]);
}

/// Returns weight * x, and zeros if the weight is not positive: x may then be a mean over nothing.
Tensor weighted(const Tensor& x, const Tensor& weight) {
  const Tensor factor = cast(weight, x.dtype());
  return where(factor > 0, x * factor, 0);
}

/// Returns x, and zeros if the weight is 0: x may then be computed from nothing, and NaN.
Tensor unless_empty(const Tensor& x, const Tensor& weight) { return where(weight == 0, 0, x); }

void check_scalar(const char* function, const char* name, const Tensor& x) {
  check_defined(function, x);
  if (x.rank() != 0)
    throw ShapeError(str(function, ": ", name, " is ", x.type(), ", but must be a scalar"));
  if (!is_float(x.dtype()))
    throw DTypeError(str(function, ": ", name, " is ", x.type(),
                         ", but must be floating; cast it, as in cast(x, f32)"));
}

void check_floating(const char* function, const Tensors& tensors, const OperandPaths& paths) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!is_float(tensors[i].dtype()))
      throw DTypeError(str(function, ": ", paths[i].empty() ? "x" : paths[i], " is ",
                           tensors[i].type(), "; a mean is of floating tensors"));
}

/// Sums the shards of this rank's nodes, in their tree.
Tensors sum_within(const std::vector<Tensors>& by_shard, ShardRange own, ShardRange node) {
  if (node.size() == 1) return by_shard[static_cast<std::size_t>(node.begin - own.begin)];
  const auto [left, right] = halves(node);
  Tensors sum = sum_within(by_shard, own, left);
  const Tensors other = sum_within(by_shard, own, right);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + other[i];
  return sum;
}

}  // namespace

TreeTensors tensors_in(const TreeRef& tree) {
  FindSlices find;
  tree.read(find);
  return {tensors_of(flatten_tree(tree)), tree_paths_of(tree, {}), std::move(find.found)};
}

Tensors all_reduce_tree(const TreeTensors& tree, Reduction how) {
  if (how == Reduction::max && !tree.slices.empty())
    throw ArgumentError(str("all_reduce: ", tree.paths[tree.slices[0]],
                            " belongs to IndexedSlices, whose rows are added; make them dense"));
  const Dense dense(tree);
  Tensors result = tree.tensors;
  dense.put(all_reduce(dense.of(tree.tensors), how, dense.of(tree.paths)), result);
  gather_slices(tree, result);
  return result;
}

Tensors all_reduce_mean_tree(const TreeTensors& tree, const Tensor& count) {
  const Dense dense(tree);
  Tensors sent = dense.of(tree.tensors);
  OperandPaths paths = dense.of(tree.paths);
  check_floating("all_reduce_mean", sent, paths);
  check_scalar("all_reduce_mean", "count", count);
  for (Tensor& x : sent) x = weighted(x, count);
  sent.push_back(count);
  paths.push_back("count");
  Tensors sums = all_reduce(sent, Reduction::sum, paths);
  const Tensor total = std::move(sums.back());
  sums.pop_back();
  for (Tensor& x : sums) x = x / cast(total, x.dtype());
  Tensors result = tree.tensors;
  dense.put(sums, result);
  for (const std::size_t i : tree.slices)
    if (result[i].is_defined())
      result[i] = weighted(result[i], count) / cast(total, result[i].dtype());
  gather_slices(tree, result);
  return result;
}

Tensors broadcast_tree(const TreeTensors& tree, int root) {
  TreeTensors whole = tree;
  whole.slices.clear();
  const Dense dense(whole);
  Tensors result = tree.tensors;
  dense.put(broadcast_from(root, dense.of(tree.tensors), dense.of(tree.paths)), result);
  return result;
}

TreeTensors without_frozen(TreeTensors gradient, const GroupOptions& groups) {
  std::size_t floating = 0;
  for (std::size_t i = 0; i < gradient.tensors.size(); ++i) {
    const Tensor& x = gradient.tensors[i];
    if (!x.is_defined() || x.type().is_list() || !is_float(x.dtype())) continue;
    if (!groups.of(floating++).frozen) continue;
    const bool are_rows =
        std::count(gradient.slices.begin(), gradient.slices.end(), i) > 0;  // three tensors
    for (std::size_t k = i; k < i + (are_rows ? 3 : 1); ++k) gradient.tensors[k] = Tensor();
  }
  return gradient;
}

void fill_empty(Tensors& tensors, const Tensors& others) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].is_defined()) tensors[i] = others[i];
}

Tensors mean_of_shards(const std::vector<Weighted>& losses, const std::vector<TreeTensors>& trees,
                       int shards) {
  const Transport& transport = Transport::active("value_and_grad");
  const ShardRange own = shards_of_rank(shards, transport.rank(), transport.size());
  const TreeTensors& first = trees[0];
  const Dense dense(first);
  Tensors weights;
  std::vector<Tensors> by_shard;
  for (std::size_t s = 0; s < trees.size(); ++s) {
    check_scalar("value_and_grad", "weight", losses[s].weight);
    if (losses[s].weight.dtype() != losses[s].total.dtype())
      throw DTypeError(str("value_and_grad: weight is ", losses[s].weight.type(), ", but total is ",
                           losses[s].total.type(), "; cast the weight"));
    weights.push_back(stop_gradient(losses[s].weight));
    Tensors values = dense.of(trees[s].tensors);
    values.push_back(losses[s].total);
    for (Tensor& x : values)
      if (is_float(x.dtype())) x = unless_empty(x, weights[s]);
    values.push_back(weights[s]);
    by_shard.push_back(std::move(values));
  }
  std::vector<Tensors> nodes;
  for (const ShardRange node : nodes_within(shards, own))
    nodes.push_back(sum_within(by_shard, own, node));
  OperandPaths paths = dense.of(first.paths);
  for (std::string& path : paths) path = str("gradient", path.empty() ? "" : ".", path);
  paths.insert(paths.end(), {"loss.total", "loss.weight"});
  Tensors sums = all_reduce_nodes(nodes, shards, paths);
  const Tensor weight = std::move(sums.back());
  sums.pop_back();
  const Tensor loss = Weighted{std::move(sums.back()), weight}.mean();
  sums.pop_back();
  const Tensor divisor = where(weight == 0, 1, weight);
  const auto mean = [&](const Tensor& x) { return x / cast(divisor, x.dtype()); };
  for (Tensor& x : sums)
    if (is_float(x.dtype())) x = mean(x);

  Tensors result = first.tensors;
  dense.put(sums, result);
  for (const std::size_t i : first.slices) {
    Tensors rows, numbers;
    for (std::size_t s = 0; s < trees.size(); ++s) {
      const Tensor& values = trees[s].tensors[i];
      if (!values.is_defined()) continue;
      rows.push_back(mean(unless_empty(values, weights[s])));
      numbers.push_back(trees[s].tensors[i + 1]);
    }
    if (rows.empty()) continue;
    result[i] = gather_rows(concat(rows, 0), first.paths[i]);
    result[i + 1] = gather_rows(concat(numbers, 0), first.paths[i + 1]);
  }
  result.push_back(loss);
  return result;
}

}  // namespace reel::detail
