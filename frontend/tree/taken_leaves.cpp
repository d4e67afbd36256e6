#include "reel/frontend/tree/taken_leaves.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/frontend/tree/append_leaves.h"

namespace reel::detail {
namespace {

/// Moves the tensors of a tree into leaves of it.
struct TakeTensors : TreeWriter {
  TreeLeaf* next;
  explicit TakeTensors(TreeLeaf* first) : next(first) {}
  void leaf() override { ++next; }
  void tensor(Tensor& t) override { (next++)->tensor = std::move(t); }
  void array(TensorArray& a) override { (next++)->tensor = std::move(a).list(); }
};

/// Moves the tensors of leaves back into the tree that they were taken from. A leaf is empty if
/// another argument gave its tensor.
struct PutTensorsBack : TreeWriter {
  TreeLeaf* next;
  explicit PutTensorsBack(TreeLeaf* first) : next(first) {}
  void leaf() override { ++next; }
  void tensor(Tensor& t) override {
    if (Tensor& taken = (next++)->tensor; taken.is_defined()) t = std::move(taken);
  }
  void array(TensorArray& a) override {
    if (Tensor& taken = (next++)->tensor; taken.is_defined())
      a = TensorArray::of_list(std::move(taken));
  }
};

// Both return the leaf behind the tree's last one, and never throw.
TreeLeaf* take_tensors(const TreeSlot& tree, TreeLeaf* first) {
  TakeTensors take(first);
  tree.write(take);
  return take.next;
}
TreeLeaf* put_tensors_back(const TreeSlot& tree, TreeLeaf* first) {
  PutTensorsBack put(first);
  tree.write(put);
  return put.next;
}

}  // namespace

std::vector<std::string> paths_of(Arguments arguments) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::vector<std::string> of = leaf_paths_of(arguments[i].tree, str(i));
    std::move(of.begin(), of.end(), std::back_inserter(paths));
  }
  return paths;
}

TreeLeaves take_leaves_of(const TreeSlot& tree) {
  TreeLeaves leaves;
  append_leaves_without_tensors(leaves, tree);
  take_tensors(tree, leaves.data());
  return leaves;
}

template <class Visit>
void TakenLeaves::each_moved(const Visit& visit) {
  TreeLeaf* next = leaves.data();
  for (const Argument& argument : arguments_)
    next = argument.moved_in ? visit(*argument.moved_in, next) : next + count_leaves(argument.tree);
}

TakenLeaves::TakenLeaves(Arguments arguments) : arguments_(arguments) {
  std::size_t count = 0;
  for (const Argument& argument : arguments) count += count_leaves(argument.tree);
  leaves.reserve(count);
  std::size_t given = 0, taken = 0;
  for (const Argument& argument : arguments)
    if (argument.moved_in)
      given += append_leaves_without_tensors(leaves, argument.tree);
    else
      append_leaves(leaves, argument.tree);
  each_moved([&](const TreeSlot& tree, TreeLeaf* first) {
    TreeLeaf* const end = take_tensors(tree, first);
    taken += static_cast<std::size_t>(
        std::count_if(first, end, [](const TreeLeaf& leaf) { return leaf.tensor.is_defined(); }));
    return end;
  });
  if (taken == given) return;
  // Arguments overlap, as v and v[1] or one object twice: both pass a reference to the tensor that
  // both give.
  each_moved(put_tensors_back);
  leaves.clear();
  for (const Argument& argument : arguments) append_leaves(leaves, argument.tree);
  for (const Argument& argument : arguments)
    if (argument.moved_in) drop_tensors(*argument.moved_in);
}

TakenLeaves::~TakenLeaves() {
  if (!is_kept_) each_moved(put_tensors_back);
}

}  // namespace reel::detail
