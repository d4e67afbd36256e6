// core/dims/dim_facts.h — facts about a Dim: the dims from which it was computed, and whether it
// was made from lengths.
#pragma once

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

}  // namespace reel
