// tests/gradients.h — a check of gradients of parameter trees against central differences.
#pragma once

#include <string>
#include <vector>

#include "reel/frontend/transforms/grad.h"
#include "reel/frontend/tree/tree.h"
#include "reel/tests/check.h"

namespace reel {

/// Expects that `actual`, a gradient of f at x, agrees with central differences in every f64
/// element of the tree, padding included. f: x -> scalar.
template <class F, class Tree>
void expect_gradient_of(const F& f, const Tree& x, const Tree& actual, double tolerance = 1e-7,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  constexpr double kStep = 1e-5;
  const TreeLeaves leaves = flatten(x), gradients = flatten(actual);
  const std::vector<std::string> paths = leaf_paths(x);
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    if (leaves[k].kind != TreeLeaf::Kind::tensor || leaves[k].tensor.dtype() != f64) continue;
    const Tensor& leaf = leaves[k].tensor;
    const auto at = [&](std::size_t i, double step) {
      std::vector<double> values = values_of(leaf);
      values[i] += step;
      TreeLeaves moved = leaves;
      moved[k].tensor = leaf.rank() ? tensor(values, leaf.dims()) : scalar(values[0], f64);
      const Tensor y = f(unflatten(x, moved));
      return y.template item<double>();
    };
    const std::vector<double> values = values_of(gradients[k].tensor);
    std::vector<double> expected;
    for (std::size_t i = 0; i < values.size(); ++i)
      expected.push_back((at(i, kStep) - at(i, -kStep)) / (2 * kStep));
    check_detail::compare(str("gradient of ", paths[k], ' ', leaf.type()), values, expected,
                          tolerance, file, line);
  }
}

}  // namespace reel
