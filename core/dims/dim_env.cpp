#include "reel/core/dims/dim_env.h"

#include <algorithm>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/dims/dim_changes.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/types/block.h"

namespace reel {
namespace {

/// Returns a ragged dim with the same lengths over other dims of the same sizes.
Dim with_length_dims(const Dim& dim, Dims length_dims) {
  const DimNode& node = *dim.node();
  Ref<DimNode> made(new DimNode);
  made->name = node.name;
  made->kind = node.kind;
  made->size = node.size;
  made->is_full = node.is_full;
  made->lengths =
      allocate_view(node.lengths->type.with(length_dims), node.lengths, node.lengths->data);
  made->length_dims = std::move(length_dims);
  const Dim result = Dim::of_node(std::move(made));
  copy_slice(dim, result);
  return result;
}

/// Returns the dim with its lengths over the substitutes. Each dim is moved once: `bindings` gets
/// the result.
Dim over(const Dim& dim, const DimChanges& changes, std::vector<std::pair<Dim, Dim>>& bindings) {
  if (!dim.is_ragged() || !dim.node()->lengths) return dim;
  Dims length_dims = changes(dim.length_dims());
  if (length_dims == dim.length_dims()) return dim;
  if (const DimExpression* expression = expression_of(dim)) {
    Dims operands;
    for (const Dim& of : expression->operands) operands.push_back(over(of, changes, bindings));
    return recompute(*expression, operands);
  }
  for (const auto& [from, moved] : bindings)
    if (from == dim && moved.length_dims() == length_dims) return moved;
  return bindings.emplace_back(dim, with_length_dims(dim, std::move(length_dims))).second;
}

}  // namespace

const Dim* DimEnv::find(const Dim& symbol) const {
  if (!places_.empty()) {
    const auto found = places_.find(symbol.node());
    return found == places_.end() ? nullptr : &bindings_[found->second].second;
  }
  for (const auto& [from, to] : bindings_)
    if (from.node() == symbol.node()) return &to;
  return nullptr;
}

void DimEnv::add(const Dim& symbol, const Dim& actual) {
  bindings_.emplace_back(symbol, actual);
  if (bindings_.size() <= kMaxSearched) return;
  for (; indexed_ < bindings_.size(); ++indexed_)  // the first binding of a symbol counts
    places_.emplace(bindings_[indexed_].first.node(), indexed_);
}

bool DimEnv::knows(const Dim& symbol) const {
  if (find(symbol)) return true;
  const DimExpression* expression = expression_of(symbol);
  return expression && std::all_of(expression->operands.begin(), expression->operands.end(),
                                   [&](const Dim& of) { return !of.is_symbol() || knows(of); });
}

Dim DimEnv::resolve(const Dim& symbol) {
  if (!symbol.is_symbol()) return symbol;
  if (const Dim* found = find(symbol)) return *found;
  if (const DimExpression* expression = expression_of(symbol)) {
    Dims operands;
    for (const Dim& of : expression->operands) operands.push_back(resolve(of));
    const Dim computed = recompute(*expression, operands);
    if (!keeps_unknown_) add(symbol, computed);  // operands are final
    return computed;
  }
  if (keeps_unknown_) return symbol;
  if (!symbol.is_named()) return Dim::unknown();  // of a list's elements; it is not needed
  if (!symbol.has_size()) throw InternalError(str("dim ", symbol, " is used before it is bound"));
  const Dim fresh(symbol.name(), symbol.size());
  add(symbol, fresh);
  return fresh;
}

TensorType DimEnv::resolve(const TensorType& type) {
  if (!type.node()->has_symbols) return type;
  Dims dims;
  for (const Dim& dim : type.dims()) dims.push_back(resolve(dim));
  return type.with(dims);
}

void DimEnv::bind(const Dim& symbol, const Dim& actual, const Dim* rows) {
  if (!symbol.is_symbol() || find(symbol)) return;
  const Dims& from = symbol.length_dims();
  Dims to = actual.length_dims();
  if (rows) std::erase(to, *rows);
  DimChanges bound;
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i) {
    bind(from[i], to[i], rows);
    const Dim* const known = from[i].is_symbol() ? find(from[i]) : nullptr;
    if (known && known->has_size() && known->raw_size() == to[i].raw_size())
      bound.add(to[i], *known);
  }
  add(symbol, bound.empty() ? actual : over(actual, bound, bindings_));
}

void DimEnv::bind(const TensorType& formal, const TensorType& actual, const Dim* rows) {
  if (formal.rank() != actual.rank() && !formal.is_unranked() && !actual.is_unranked())
    throw InternalError(str("a value of type ", formal, " was given as ", actual));
  if (!formal.node()->has_symbols) return;
  for (int i = 0; i < formal.rank(); ++i) bind(formal.dims()[i], actual.dims()[i], rows);
}

}  // namespace reel
