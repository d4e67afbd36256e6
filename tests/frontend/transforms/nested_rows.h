// tests/frontend/transforms/nested_rows.h — NestedRows, which compares nested calls of vmap with
// nested calls of map.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {

using Function = std::function<Tensor(const Tensor&)>;  // one type, so that the file compiles fast

/// Returns f under as many calls of vmap as there are levels.
inline Function nested(Function f, int levels) {
  for (int i = 0; i < levels; ++i) f = [f](const Tensor& x) -> Tensor { return vmap(f)(x); };
  return f;
}
/// Returns f under as many calls of map as there are levels.
inline Function nested_map(Function f, int levels) {
  for (int i = 0; i < levels; ++i) f = [f](const Tensor& x) -> Tensor { return map(f, x); };
  return f;
}

/// Returns [sizes..., width] numbers: sin(0), sin(1), ...
inline Tensor sines(std::vector<std::int64_t> sizes, std::int64_t width) {
  sizes.push_back(width);
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return reshape(sin(cast(range(count), f64)), sizes);
}

class NestedRows : public InEveryMode {
 protected:
  /// Expects the bits of nested map for f, which may draw.
  void expect_as_map(const Function& f, const Tensor& x, int levels) {
    manual_seed(5);
    const Tensor expected = nested_map(f, levels)(x);
    manual_seed(5);
    const Tensor actual = run(nested(f, levels))(x);
    EXPECT_EQ(actual.type(), expected.type());
    if (is_exact())
      expect_same_bits(actual, expected);
    else
      expect_all_close(actual, expected, 1e-12);
  }
};

}  // namespace reel
