// frontend/tree/dim_lists.h — lists of dims as sets: joined, without others, compared.
#pragma once

#include "reel/core/types/dim.h"

namespace reel {

/// Returns dims with further ones behind them, each once.
Dims with_more(Dims dims, const Dims& more);
/// Returns dims without others.
Dims without(Dims dims, const Dims& others);
/// Returns true if both lists have the same dims, in any order. Requires that no dim occurs twice.
bool have_same_dims(const Dims& a, const Dims& b);

}  // namespace reel
