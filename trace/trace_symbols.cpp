#include "reel/trace/trace_symbols.h"

#include <cstddef>
#include <optional>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/dim_expression.h"

namespace reel {

TraceSymbols::TraceSymbols(DimTable& table, const DynamicSizes& dynamic) : table_(table) {
  for (const Dim& dim : table.dims()) symbols_.push_back(made_symbol(dim, dynamic));
  if (has_slices()) note_slices();
}

Dim TraceSymbols::operator[](const Dim& dim) const {
  return dim.is_named() ? symbols_[table_.place(dim)] : dim;
}

/// Requires the symbols of the dim's operands and of the dims of its lengths.
Dim TraceSymbols::made_symbol(const Dim& dim, const DynamicSizes& dynamic) const {
  if (const DimExpression* expression = table_.visible_expression(dim)) {
    Dims operands;
    for (const Dim& of : expression->operands) operands.push_back((*this)[of]);
    return recompute(*expression, operands);
  }
  Ref<DimNode> node(new DimNode);
  node->name = dim.name();
  node->kind = dynamic.has(dim) ? DimKind::dynamic : dim.node()->kind;
  node->is_symbol = true;
  node->size = node->kind == DimKind::fixed ? dim.size() : -1;
  for (const Dim& of : dim.length_dims()) node->length_dims.push_back((*this)[of]);
  return Dim::of_node(node);
}

/// Makes each symbol a slice of the symbol of the smallest dim that contains its own dim.
void TraceSymbols::note_slices() const {
  const Dims& dims = table_.dims();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (expression_of(symbols_[i])) continue;  // its operands are slices
    std::optional<std::size_t> nearest;
    for (std::size_t j = 0; j < dims.size(); ++j)
      if (j != i && is_slice_of(dims[i], dims[j]) &&
          (!nearest || is_slice_of(dims[j], dims[*nearest])))
        nearest = j;
    if (nearest)
      note_slice(symbols_[i], symbols_[*nearest], symbols_[*nearest],
                 known_key(dims[i], dims[*nearest]));
    else
      copy_slice(dims[i], symbols_[i]);
  }
}

/// Returns the key by which the function finds a slice among its arguments, or an empty one: the
/// result of shift(x, words, 1) in the function then has the dims of such an argument.
SliceKey TraceSymbols::known_key(const Dim& slice, const Dim& whole) const {
  const std::optional<SliceKey> key = table_.key_of_slice(slice, whole);
  return key ? key->with_dims([&](const Dim& dim) { return (*this)[dim]; }) : SliceKey();
}

TreeLeaves TraceSymbols::add_inputs(GraphBuilder& builder, const TreeLeaves& arguments,
                                    const DynamicSizes& dynamic) const {
  for (const Dim& symbol : symbols_)
    if (!symbol.is_undefined()) builder.add_input(token_type(symbol));
  TreeLeaves promises = arguments;
  for (std::size_t i = 0; i < promises.size(); ++i) {
    TreeLeaf& leaf = promises[i];
    if (leaf.kind == TreeLeaf::Kind::dim) leaf.dim = (*this)[leaf.dim];
    if (leaf.kind != TreeLeaf::Kind::tensor || !leaf.tensor.is_defined()) continue;
    Dims dims;
    for (const Dim& dim : dims_in_trace(promises, i, dynamic)) dims.push_back((*this)[dim]);
    leaf.tensor = builder.add_input(leaf.tensor.type().with(dims));
  }
  return promises;
}

}  // namespace reel
