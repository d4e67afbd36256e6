#include "reel/core/dims/dim_changes.h"

#include <algorithm>

#include "reel/core/types/dim_expression.h"

namespace reel {

void DimChanges::add(const Dim& from, const Dim& to) {
  // Not by ==: in a trace, a dim of an argument equals its symbol, and comparing them counts as
  // naming the dim in the traced code.
  if (from.node() == to.node() && from.raw_size() == to.raw_size()) return;
  changes_.emplace_back(from, to);
}

bool DimChanges::affects(const Dim& dim) const {
  if (changes_.empty() || !dim.is_named()) return false;
  if (std::any_of(changes_.begin(), changes_.end(),
                  [&](const auto& change) { return change.first == dim; }))
    return true;
  const DimExpression* expression = expression_of(dim);
  return expression && std::any_of(expression->operands.begin(), expression->operands.end(),
                                   [&](const Dim& of) { return affects(of); });
}

bool DimChanges::affects(const TensorType& type) const {
  return std::any_of(type.dims().begin(), type.dims().end(),
                     [&](const Dim& dim) { return affects(dim); });
}

Dim DimChanges::operator()(const Dim& dim) const {
  if (!affects(dim)) return dim;
  for (const auto& [from, to] : changes_)
    if (from == dim) return to;
  const DimExpression& expression = *expression_of(dim);
  return recompute(expression, (*this)(expression.operands));
}

Dims DimChanges::operator()(const Dims& dims) const {
  Dims result;
  result.reserve(dims.size());
  for (const Dim& dim : dims) result.push_back((*this)(dim));
  return result;
}

TensorType DimChanges::operator()(const TensorType& type) const {
  return affects(type) ? type.with((*this)(type.dims())) : type;
}

}  // namespace reel
