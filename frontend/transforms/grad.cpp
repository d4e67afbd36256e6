#include "reel/frontend/transforms/grad.h"

#include "reel/autodiff/tape.h"
#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"

namespace reel {

Tensor zero_gradient(const Tensor& source) {
  if (!source.is_defined()) return source;
  if (source.type().is_list()) return list_zeros_like(source);
  const TensorType type = type_here(source.type());
  return type.is_known() ? zeros(type) : zeros_like(source);
}

Tensor whole_gradient(Tensor cotangent, const Tensor& source) {
  if (!cotangent.is_defined()) return zero_gradient(source);
  return source.type().is_list() ? list_add(std::move(cotangent), list_zeros_like(source))
                                 : cotangent;
}

namespace detail {

void watch_tree(RecordingTape& tape, const TreeRef& tree) {
  for (const Tensor& tensor : tensors_of(flatten_tree(tree)))
    if (tensor.is_defined()) tape.watch(tensor);
  for (const FoundTable& found : tables_in(tree))
    if (found.table->is_dense()) tape.watch_rows(found.table->dense());
}

LeavesGradient gradient_of_leaves(RecordingTape& tape, const Tensors& targets,
                                  const Tensors& cotangents, const TreeRef& tree) {
  const TreeLeaves leaves = flatten_tree(tree);
  const Tensors sources = tensors_of(leaves);
  std::vector<TableRows> found;
  Tensors gradient = tape.gradient(targets, cotangents, sources, nullptr, &found);
  const std::vector<FoundTable> tables = tables_in(tree);
  std::vector<EmbeddingTable> rows(tables.size());
  for (std::size_t k = 0; k < tables.size(); ++k) {
    const std::size_t i = tables[k].tensors;
    if (!tables[k].table->is_dense() || gradient[i].is_defined()) continue;
    rows[k] = rows_of_table(found[i], sources[i].type());
    found[i] = {};
    gradient[i] = sources[i];
  }
  // A table may also be read whole, or be requested as a plain tensor too.
  for (std::size_t i = 0; i < sources.size(); ++i)
    gradient[i] = with_rows(whole_gradient(std::move(gradient[i]), sources[i]), found[i]);
  return {with_tensors(leaves, gradient), std::move(rows)};
}

void put_tables(const TreeSlot& tree, std::vector<EmbeddingTable> tables) {
  const std::vector<FoundTable> places = tables_in(tree);
  for (std::size_t k = 0; k < tables.size(); ++k)
    if (tables[k].is_sparse()) *places[k].table = std::move(tables[k]);
}

TreeLeaves with_cotangents(const TreeLeaves& leaves, Tensors cotangents) {
  const Tensors sources = tensors_of(leaves);
  for (std::size_t i = 0; i < sources.size(); ++i)
    cotangents[i] = whole_gradient(std::move(cotangents[i]), sources[i]);
  return with_tensors(leaves, cotangents);
}

void own_tensors(TreeLeaves& leaves) {
  for (TreeLeaf& leaf : leaves)
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined() &&
        is_float(leaf.tensor.dtype()))
      leaf.tensor = identity(leaf.tensor);
}

void check_differentiable(const TreeRef& tree, const char* function) {
  for (const Tensor& tensor : tensors_of(flatten_tree(tree)))
    if (tensor.is_defined() && is_float(tensor.dtype())) return;
  throw ArgumentError(str(function, ": the first argument has no floating tensor to take the ",
                          "gradient of; a model that trains has floating parameters"));
}

void check_scalar(const Tensor& y, const char* what) {
  if (!y.is_defined()) throw ArgumentError(str(what, ": the function returned an empty Tensor"));
  if (y.rank() || y.type().is_list())
    throw ShapeError(str(what, ": the function must return a scalar, got ", y.type(),
                         "; reduce it, with sum or mean"));
  if (!is_float(y.dtype()))
    throw DTypeError(
        str(what, ": the function must return a floating scalar, got ", y.type(), "; cast it"));
}

void check_cotangents(const TreeLeaves& values, const PathsFn& value_paths,
                      const TreeLeaves& cotangents, const PathsFn& cotangent_paths) {
  if (!same_structure(values, cotangents))
    throw StructureError(str(
        "vjp: the cotangent has another structure than the value",
        structure_differences(values, value_paths, cotangents, cotangent_paths, "its cotangent")));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].tensor.is_defined() || !cotangents[i].tensor.is_defined()) continue;
    const TensorType &value = values[i].tensor.type(), &cotangent = cotangents[i].tensor.type();
    const auto message = [&] {
      return str("vjp: a cotangent has the type of the value, which is ", value, ", got ",
                 cotangent, one_dim_hint(value.dims(), cotangent.dims()));
    };
    if (value.dtype() != cotangent.dtype()) throw DTypeError(message() + "; cast it");
    // Inside a trace, tensors from outside have other dims than the trace's own: compare known
    // types only.
    const bool is_known = value.is_known() && cotangent.is_known();
    if (is_known && !(value.dims() == cotangent.dims() && value.is_list() == cotangent.is_list()))
      throw ShapeError(message());
  }
}

}  // namespace detail
}  // namespace reel
