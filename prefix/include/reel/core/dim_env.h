// core/dim_env.h — DimEnv, what the symbolic dims of a graph stand for while it runs.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/dim.h"
#include "reel/core/dim_expression.h"
#include "reel/core/tensor_type.h"

namespace reel {

/// Maps the symbols of one graph to the dims of one run of it.
///
/// A symbol is bound where a value whose type mentions it first appears: at an input, or at the
/// node that makes it. One that is computed from others (time + 1) stands for what is computed from
/// theirs. A static dim born in the trace is bound to a fresh dim of its size when it
/// is first asked for.
class DimEnv {
 public:
  DimEnv() = default;
  /// An environment that only renames: symbols that it does not know stay as they are.
  static DimEnv renaming() { return renaming(DimEnv()); }
  static DimEnv renaming(DimEnv env) {
    env.keeps_unknown_ = true;
    return env;
  }

  Dim resolve(const Dim& symbol);
  TensorType resolve(const TensorType& type);
  /// Binds what `formal` mentions and is not bound yet to the dims of `actual`.
  void bind(const TensorType& formal, const TensorType& actual);
  void bind(const Dim& symbol, const Dim& actual);
  /// Can resolve it: it is bound, or computed from dims that are known.
  bool knows(const Dim& symbol) const;

 private:
  const Dim* find(const Dim& symbol) const;
  std::vector<std::pair<Dim, Dim>> bindings_;
  bool keeps_unknown_ = false;
};

/// Calls fn for every symbol that the type mentions, those that its ragged dims' lengths run over
/// included. A symbol that is computed from others mentions those.
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

/// Calls fn for every symbol that a value of the type binds: time + 1 does not say what time is.
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
