#include "reel/frontend/tree.h"

#include <charconv>

#include "reel/core/errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/dims.h"
#include "reel/core/str.h"

namespace reel {

namespace detail {

std::string print_exactly(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

Tensor number_as_tensor(double number) { return scalar(number); }
Tensor number_as_tensor(std::int64_t number) { return scalar(number); }
Tensor number_as_tensor(bool number) { return scalar(number); }

void refuse_rows(const char* function) {
  throw StructureError(
      str(function,
          ": a gradient in the tree is rows of an EmbeddingTable, whose numbers are no "
          "values; make it whole with with_dense_tables(gradient), or add two of them "
          "with +"));
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
    if (leaf.kind == TreeLeaf::Kind::tensor) leaf.tensor = tensors[next++];
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
