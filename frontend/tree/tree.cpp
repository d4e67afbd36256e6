#include "reel/frontend/tree/tree.h"

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/frontend/tree/leaves.h"

namespace reel {

namespace detail {

Tensor number_as_tensor(double number) { return scalar(number); }
Tensor number_as_tensor(std::int64_t number) { return scalar(number); }
Tensor number_as_tensor(bool number) { return scalar(number); }

void refuse_leaves() {
  throw StructureError(
      "unflatten: the leaves are not those of a tree of this structure; give as many as flatten "
      "gives for it, of the same kinds");
}

void check_same_structure(const char* function, const TreeLeaves& first, const TreeLeaves& other,
                          const std::function<std::vector<std::string>()>& first_paths,
                          const std::function<std::vector<std::string>()>& other_paths) {
  if (same_structure(first, other)) return;
  throw StructureError(
      str(function, ": the trees do not have the same structure, ", first.size(), " leaves and ",
          other.size(),
          structure_differences(first, first_paths, other, other_paths, "in a further tree")));
}

void refuse_rows(const char* function) {
  throw StructureError(
      str(function,
          ": a gradient in the tree consists of rows of an EmbeddingTable, whose row numbers are "
          "not values; make it dense with with_dense_tables(gradient), or add two of them with +"));
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
