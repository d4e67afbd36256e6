// core/dims/dim_facts.h — facts about a Dim: the dims from which it was computed, whether it was
// made from lengths, and over which dims these run.
#pragma once

#include <algorithm>

#include "reel/core/types/dim_expression.h"

namespace reel {

/// Calls fn with each dim from which a dim is finally computed: a and b for (a+1)*2+b. Calls it
/// with the dim itself if that was not computed.
template <class Fn>
void for_each_operand(const Dim& dim, Fn&& fn) {
  const DimExpression* expression = expression_of(dim);
  if (!expression) return fn(dim);
  for (const Dim& of : expression->operands) for_each_operand(of, fn);
}

/// Returns true if the dim was made from lengths: from one, or from one for every entry. In a
/// trace, also if its size is dynamic (JitOptions::dynamic).
inline bool is_made_from_lengths(const Dim& dim) {
  return dim.is_named() && !dim.is_undefined() && dim.node()->kind != DimKind::fixed;
}

/// Returns true if the lengths of the dim run over `rows`, or over a dim whose lengths do. Asks the
/// dims from which a computed dim was made.
inline bool runs_over(const Dim& dim, const Dim& rows) {
  if (const DimExpression* expression = expression_of(dim))
    return std::ranges::any_of(expression->operands,
                               [&](const Dim& of) { return runs_over(of, rows); });
  return std::ranges::any_of(dim.length_dims(),
                             [&](const Dim& of) { return of == rows || runs_over(of, rows); });
}

}  // namespace reel
