#include "reel/frontend/tree/tree.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/frontend/tree/append_leaves.h"
#include "reel/frontend/tree/leaves.h"

namespace reel {

namespace {

[[noreturn]] void refuse_leaves() {
  throw StructureError(
      "unflatten: the leaves are not those of a tree of this structure; give as many as flatten "
      "gives for it, of the same kinds");
}

struct Flatten : detail::TreeReader {
  detail::AppendedLeaves& to;
  TreeLeaves& leaves;
  explicit Flatten(detail::AppendedLeaves& appended) : to(appended), leaves(appended.all) {}
  /// Appends the leaf of a tensor that is empty or not.
  Tensor& add(bool is_empty) {
    TreeLeaf& leaf = leaves.emplace_back();
    leaf.kind = TreeLeaf::Kind::tensor;
    to.empty += is_empty;
    return leaf.tensor;
  }
  void tensor(const Tensor& t) override { add(!t.is_defined()) = t; }
  void array(const TensorArray& a) override { add(!a.list().is_defined()) = a.list(); }
  using TreeReader::part;
  void part(const SparseTensor&) override {
    to.any_length.insert(to.any_length.end(), {leaves.size(), leaves.size() + 1});
  }
  void dim(const Dim& d) override { leaves.push_back(TreeLeaf::of(d)); }
  void none() override { leaves.push_back(TreeLeaf{}); }
  void fixed(const FixedValue& value) override { leaves.push_back(TreeLeaf::of(value)); }
  void size(std::size_t n) override { leaves.push_back(TreeLeaf::of(FixedValue::of_size(n))); }
  void key(const std::string& key) override {
    leaves.push_back(TreeLeaf::of(FixedValue::of_key(key)));
  }
};

/// As Flatten, but the tensors are moved out of the tree. Requires a tree that may be changed: a
/// reader, since writers do not see the values of fixed leaves.
struct Take : Flatten {
  using Flatten::Flatten;
  void tensor(const Tensor& t) override {
    add(!t.is_defined()) = std::move(const_cast<Tensor&>(t));
  }
  void array(const TensorArray& a) override {
    add(!a.list().is_defined()) = std::move(const_cast<TensorArray&>(a)).list();
  }
};

struct Unflatten : detail::TreeWriter {
  const TreeLeaves& leaves;
  std::size_t next = 0;
  explicit Unflatten(const TreeLeaves& of) : leaves(of) {}
  const TreeLeaf& take(TreeLeaf::Kind kind) {
    if (next >= leaves.size() || leaves[next].kind != kind) refuse_leaves();
    return leaves[next++];
  }
  // None and numbers are not checked: loops may leave out leaves that the tree already has.
  void leaf() override { ++next; }
  void tensor(Tensor& t) override { t = take(TreeLeaf::Kind::tensor).tensor; }
  void array(TensorArray& a) override {
    a = TensorArray::of_list(take(TreeLeaf::Kind::tensor).tensor);
  }
  void dim(Dim& d) override { d = take(TreeLeaf::Kind::dim).dim; }
  void size(std::size_t n) override {
    if (!take(TreeLeaf::Kind::fixed).fixed.is_size(n)) refuse_leaves();
  }
  void key(const std::string& key) override {
    if (!take(TreeLeaf::Kind::fixed).fixed.is_key(key)) refuse_leaves();
  }
};

/// As Unflatten, but the tensors are moved out of the leaves.
struct MoveIn : Unflatten {
  TreeLeaves& from;
  explicit MoveIn(TreeLeaves& of) : Unflatten(of), from(of) {}
  Tensor&& take_tensor() {
    take(TreeLeaf::Kind::tensor);
    return std::move(from[next - 1].tensor);
  }
  void tensor(Tensor& t) override { t = take_tensor(); }
  void array(TensorArray& a) override { a = TensorArray::of_list(take_tensor()); }
};

struct DropTensors : detail::TreeWriter {
  void tensor(Tensor& t) override { t = Tensor(); }
  void array(TensorArray& a) override { a = TensorArray::of_list({}); }
};

struct Paths : detail::TreeReader {
  std::vector<std::string> paths;
  using TreeReader::TreeReader;
  void leaf() override { paths.push_back(path()); }
};

struct CountLeaves : detail::TreeReader {
  std::size_t count = 0;
  void leaf() override { ++count; }
};

}  // namespace

namespace detail {

void append_leaves(AppendedLeaves& leaves, const TreeRef& tree) {
  Flatten flatten(leaves);
  tree.read(flatten);
}

void append_taken_leaves(AppendedLeaves& leaves, const TreeSlot& tree) {
  Take take(leaves);
  tree.read(take);
}

TreeLeaves flatten_tree(const TreeRef& tree) {
  TreeLeaves leaves;
  leaves.reserve(count_leaves(tree));  // moving leaves to larger memory costs more than counting
  AppendedLeaves appended{leaves};
  append_leaves(appended, tree);
  return leaves;
}

void fill_tree(const TreeSlot& tree, const TreeLeaves& leaves) {
  Unflatten fill(leaves);
  tree.write(fill);
}

void fill_tree(const TreeSlot& tree, TreeLeaves&& leaves) {
  MoveIn fill(leaves);
  tree.write(fill);
}

std::vector<std::string> leaf_paths_of(const TreeRef& tree, const std::string& root) {
  Paths paths(root);
  tree.read(paths);
  return std::move(paths.paths);
}

std::vector<std::string> tree_paths_of(const TreeRef& tree, const std::string& root) {
  const TreeLeaves leaves = flatten_tree(tree);
  std::vector<std::string> paths = leaf_paths_of(tree, root), result;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].kind == TreeLeaf::Kind::tensor) result.push_back(std::move(paths[i]));
  return result;
}

std::function<std::vector<std::string>()> paths_fn(const TreeRef& tree, const char* root) {
  return [tree, root] { return leaf_paths_of(tree, root); };
}

void drop_tensors(const TreeSlot& tree) noexcept {
  DropTensors drop;
  tree.write(drop);
}

std::size_t count_leaves(const TreeRef& tree) {
  CountLeaves count;
  tree.read(count);
  return count.count;
}

Tensor number_as_tensor(double number) { return scalar(number); }
Tensor number_as_tensor(std::int64_t number) { return scalar(number); }
Tensor number_as_tensor(bool number) { return scalar(number); }

void check_same_structure(const char* function, const TreeLeaves& first, const TreeLeaves& other,
                          const std::function<std::vector<std::string>()>& first_paths,
                          const std::function<std::vector<std::string>()>& other_paths) {
  if (same_structure(first, other)) return;
  throw StructureError(
      str(function, ": the trees do not have the same structure, ", first.size(), " leaves and ",
          other.size(),
          structure_differences(first, first_paths, other, other_paths, "in a further tree")));
}

}  // namespace detail

Tensors tensors_of(const TreeLeaves& leaves) {
  Tensors result;
  for (const TreeLeaf& leaf : leaves)
    if (leaf.kind == TreeLeaf::Kind::tensor) result.push_back(leaf.tensor);
  return result;
}

TreeLeaves with_tensors(TreeLeaves leaves, const Tensors& tensors) {
  std::size_t next = 0;
  for (TreeLeaf& leaf : leaves)
    if (leaf.kind == TreeLeaf::Kind::tensor) {
      if (next == tensors.size())
        throw StructureError(str("a tree of ", tensors_of(leaves).size(), " tensors was given ",
                                 tensors.size(), "; give one for each"));
      leaf.tensor = tensors[next++];
    }
  return leaves;
}

bool has_token(const TreeLeaf& leaf) {
  return leaf.kind == TreeLeaf::Kind::dim && leaf.dim.is_named() && !leaf.dim.is_undefined();
}

Tensors outputs_of(const TreeLeaves& leaves) {
  Tensors outputs = tensors_of(leaves);
  for (const TreeLeaf& leaf : leaves)
    if (has_token(leaf)) outputs.push_back(dim_token(leaf.dim));
  return outputs;
}

TreeLeaves with_outputs(TreeLeaves leaves, const Tensors& outputs) {
  std::size_t token = tensors_of(leaves).size();
  leaves = with_tensors(std::move(leaves), outputs);
  for (TreeLeaf& leaf : leaves)
    if (has_token(leaf)) leaf.dim = outputs[token++].dims()[1];
  return leaves;
}

}  // namespace reel
