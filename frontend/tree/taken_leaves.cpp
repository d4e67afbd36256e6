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

/// Moves the tensors of leaves back into the tree that they were taken from.
struct PutTensorsBack : TreeWriter {
  TreeLeaf* next;
  explicit PutTensorsBack(TreeLeaf* first) : next(first) {}
  void leaf() override { ++next; }
  void tensor(Tensor& t) override { t = std::move((next++)->tensor); }
  void array(TensorArray& a) override { a = TensorArray::of_list(std::move((next++)->tensor)); }
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

bool TakenLeaves::gives(std::size_t argument) const {
  const std::optional<TreeSlot>& slot = arguments_[argument].moved_in;
  return slot && std::none_of(arguments_.begin(),
                              arguments_.begin() + static_cast<std::ptrdiff_t>(argument),
                              [&](const Argument& before) {
                                return before.moved_in && before.moved_in->is_same(*slot);
                              });
}

template <class Visit>
void TakenLeaves::each_moved(const Visit& visit) {
  TreeLeaf* next = leaves.data();
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    next =
        gives(i) ? visit(*arguments_[i].moved_in, next) : next + count_leaves(arguments_[i].tree);
}

TakenLeaves::TakenLeaves(Arguments arguments) : arguments_(arguments) {
  std::size_t count = 0;
  for (const Argument& argument : arguments) count += count_leaves(argument.tree);
  leaves.reserve(count);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    (gives(i) ? append_leaves_without_tensors : append_leaves)(leaves, arguments[i].tree);
  each_moved(take_tensors);
}

TakenLeaves::~TakenLeaves() {
  if (!is_kept_) each_moved(put_tensors_back);
}

}  // namespace reel::detail
