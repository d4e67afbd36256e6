// core/dims/dim_env.h — DimEnv, the values of a graph's symbolic dims in one run.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// Maps the symbols of one graph to the dims of one run.
///
/// A symbol is bound where a value with the symbol in its type first appears: at an input, or at
/// the record that makes it. A symbol computed from others (time + 1) is computed from their
/// values. A static dim made in the trace is bound to a new dim of its size when it is first
/// resolved.
class DimEnv {
 public:
  DimEnv() = default;
  /// Returns an environment that only renames: symbols without a binding stay unchanged.
  static DimEnv renaming() { return renaming(DimEnv()); }
  static DimEnv renaming(DimEnv env) {
    env.keeps_unknown_ = true;
    return env;
  }

  /// Returns the dim that a symbol stands for. Throws InternalError for an unbound named symbol
  /// without a size; a renaming environment returns such symbols unchanged.
  Dim resolve(const Dim& symbol);
  TensorType resolve(const TensorType& type);
  /// Binds unbound symbols of `formal` to the dims of `actual`. Throws InternalError if the ranks
  /// differ.
  ///
  /// If the lengths of `actual` run over other dims of the same sizes than the bound ones, binds
  /// the symbol to a new dim with these lengths over the bound dims. An iteration that ran twice
  /// made its dims twice, and values of both runs may meet.
  ///
  /// rows: if it is not null, lengths of `actual` may run over this dim too, although lengths of
  /// `formal` do not.
  void bind(const TensorType& formal, const TensorType& actual, const Dim* rows = nullptr);
  void bind(const Dim& symbol, const Dim& actual, const Dim* rows = nullptr);
  /// Returns true if the symbol is bound, or computed from dims that are known.
  bool knows(const Dim& symbol) const;

 private:
  /// At most kMaxSearched bindings are searched one by one.
  static constexpr std::size_t kMaxSearched = 16;

  const Dim* find(const Dim& symbol) const;
  void add(const Dim& symbol, const Dim& actual);
  std::vector<std::pair<Dim, Dim>> bindings_;
  // If there are more: places in bindings_ of the first `indexed_` ones.
  std::unordered_map<const DimNode*, std::size_t> places_;
  std::size_t indexed_ = 0;
  bool keeps_unknown_ = false;
};

/// Calls fn for every symbol that the type mentions, also in the lengths of its ragged dims. A
/// computed symbol mentions its operands.
template <class Fn>
void for_each_symbol(const Dim& dim, Fn&& fn) {
  if (const DimExpression* expression = expression_of(dim)) {
    for (const Dim& of : expression->operands) for_each_symbol(of, fn);
    return;
  }
  if (dim.is_symbol()) fn(dim);
  for (const Dim& of : dim.length_dims()) for_each_symbol(of, fn);
}
template <class Fn>
void for_each_symbol(const TensorType& type, Fn&& fn) {
  if (type.node()->has_symbols)
    for (const Dim& dim : type.dims()) for_each_symbol(dim, fn);
}

/// Calls fn for every symbol that a value of the type binds. time + 1 does not bind time.
template <class Fn>
void for_each_bound(const Dim& dim, Fn&& fn) {
  if (dim.is_symbol() && !expression_of(dim)) fn(dim);
  for (const Dim& of : dim.length_dims()) for_each_bound(of, fn);
}
template <class Fn>
void for_each_bound(const TensorType& type, Fn&& fn) {
  if (type.node()->has_symbols)
    for (const Dim& dim : type.dims()) for_each_bound(dim, fn);
}

}  // namespace reel
REEL_API_END
