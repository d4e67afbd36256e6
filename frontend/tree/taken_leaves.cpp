#include "reel/frontend/tree/taken_leaves.h"

#include <iterator>
#include <utility>

#include "reel/core/base/str.h"

namespace reel::detail {
namespace {

/// Moves the tensors of leaves back into the tree that they were taken from. Never throws.
struct PutTensorsBack : TreeWriter {
  TreeLeaf* next;
  explicit PutTensorsBack(TreeLeaf* first) : next(first) {}
  void leaf() override { ++next; }
  void tensor(Tensor& t) override { t = std::move((next++)->tensor); }
  void array(TensorArray& a) override { a = TensorArray::of_list(std::move((next++)->tensor)); }
};

}  // namespace

std::vector<std::string> paths_of(Arguments arguments) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::vector<std::string> of = leaf_paths_of(arguments[i].tree, str(i));
    std::move(of.begin(), of.end(), std::back_inserter(paths));
  }
  return paths;
}

TakenLeaves::TakenLeaves(Arguments arguments) : arguments_(arguments) {
  for (const Argument& argument : arguments) {
    TreeLeaves of = flatten_tree(argument.tree);
    if (leaves.empty())
      leaves = std::move(of);
    else
      std::move(of.begin(), of.end(), std::back_inserter(leaves));
  }
  for (const Argument& argument : arguments)
    if (argument.moved_in) drop_tensors(*argument.moved_in);
}

TakenLeaves::~TakenLeaves() {
  if (is_kept_) return;
  TreeLeaf* next = leaves.data();
  for (const Argument& argument : arguments_) {
    if (argument.moved_in) {
      PutTensorsBack put(next);
      argument.moved_in->write(put);
      next = put.next;
    } else {
      next += count_leaves(argument.tree);
    }
  }
}

}  // namespace reel::detail
