#include "reel/frontend/tree/taken_leaves.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/frontend/tree/append_leaves.h"

namespace reel::detail {
namespace {

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

/// Returns the leaf behind the tree's last one. Never throws.
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
  const std::size_t count = count_leaves(tree);
  leaves.reserve(count);
  try {
    append_taken_leaves(leaves, tree);
  } catch (...) {
    leaves.resize(count);
    put_tensors_back(tree, leaves.data());
    throw;
  }
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
  bool has_taken = false, may_overlap = false;
  try {
    for (const Argument& argument : arguments) {
      const std::size_t empty = argument.moved_in ? append_taken_leaves(leaves, *argument.moved_in)
                                                  : append_leaves(leaves, argument.tree);
      may_overlap = may_overlap || (has_taken && empty);
      has_taken = has_taken || argument.moved_in;
    }
  } catch (...) {
    leaves.resize(count);
    each_moved(put_tensors_back);
    throw;
  }
  if (!may_overlap) return;
  // Arguments may overlap, as v and v[1] or one object twice: a tensor that one of them has given
  // seems empty in the other. Both pass a reference to it instead.
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
