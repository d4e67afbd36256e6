#include "reel/frontend/tree/taken_leaves.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/frontend/tree/append_leaves.h"

namespace reel::detail {
namespace {

/// Moves the tensors of leaves back into the tree that they were taken from. A leaf is empty if
/// another argument gave its tensor, and leaves are missing if memory for them ran out.
struct PutTensorsBack : TreeWriter {
  TreeLeaf *next, *end;
  PutTensorsBack(TreeLeaf* first, TreeLeaf* last) : next(first), end(last) {}
  Tensor take() { return next == end ? Tensor() : std::move((next++)->tensor); }
  void leaf() override { take(); }
  void tensor(Tensor& t) override {
    if (Tensor taken = take(); taken.is_defined()) t = std::move(taken);
  }
  void array(TensorArray& a) override {
    if (Tensor taken = take(); taken.is_defined()) a = TensorArray::of_list(std::move(taken));
  }
};

/// Returns the leaf behind the tree's last one, or `end`. Never throws.
TreeLeaf* put_tensors_back(const TreeSlot& tree, TreeLeaf* first, TreeLeaf* end) {
  PutTensorsBack put(first, end);
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
  leaves.reserve(count_leaves(tree));
  AppendedLeaves appended{leaves};
  try {
    append_taken_leaves(appended, tree);
  } catch (...) {
    put_tensors_back(tree, leaves.data(), leaves.data() + leaves.size());
    throw;
  }
  return leaves;
}

TakenLeaves::TakenLeaves(Arguments arguments, std::size_t expected) : arguments_(arguments) {
  leaves.reserve(expected);
  bool has_taken = false, may_overlap = false;
  AppendedLeaves appended{leaves};
  try {
    for (const Argument& argument : arguments) {
      appended.empty = 0;
      if (argument.moved_in)
        append_taken_leaves(appended, *argument.moved_in);
      else
        append_leaves(appended, argument.tree);
      may_overlap = may_overlap || (has_taken && appended.empty);
      has_taken = has_taken || argument.moved_in;
    }
  } catch (...) {
    put_back();
    throw;
  }
  any_length = std::move(appended.any_length);
  if (!may_overlap) return;
  // Arguments may overlap, as v and v[1] or one object twice: a tensor that was moved out of one
  // argument seems empty in the other. Both pass a reference to it instead.
  put_back();
  leaves.clear();
  for (const Argument& argument : arguments) append_leaves(appended, argument.tree);
  for (const Argument& argument : arguments)
    if (argument.moved_in) drop_tensors(*argument.moved_in);
}

TakenLeaves::~TakenLeaves() {
  if (!is_kept_) put_back();
}

/// Puts the tensors of moved-in arguments back. Never throws.
void TakenLeaves::put_back() {
  TreeLeaf* next = leaves.data();
  TreeLeaf* const end = next + leaves.size();
  for (const Argument& argument : arguments_)
    if (argument.moved_in)
      next = put_tensors_back(*argument.moved_in, next, end);
    else
      next += std::min(count_leaves(argument.tree), static_cast<std::size_t>(end - next));
}

}  // namespace reel::detail
