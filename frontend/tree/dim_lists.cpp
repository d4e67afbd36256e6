#include "reel/frontend/tree/dim_lists.h"

#include <algorithm>
#include <vector>

namespace reel {

Dims with_more(Dims dims, const Dims& more) {
  for (const Dim& dim : more)
    if (!contains(dims, dim)) dims.push_back(dim);
  return dims;
}

Dims without(Dims dims, const Dims& others) {
  std::erase_if(dims, [&](const Dim& dim) { return contains(others, dim); });
  return dims;
}

bool have_same_dims(const Dims& a, const Dims& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](const Dim& dim) { return contains(b, dim); });
}

}  // namespace reel
