// bench/models/products.h — the matrix products of a model, at the speed of oneDNN.
#pragma once

#include <functional>
#include <vector>

namespace reel::bench {

/// `times` products of {batch, m, k} and {batch, k, n}.
struct Products {
  int m, n, k;
  int batch = 1;
  int times = 1;

  double flops() const { return 2.0 * m * n * k * batch * times; }
};

/// Returns the products, and the products of the gradients of both factors.
std::vector<Products> with_gradients(const Products& products);

/// Returns the products of a recurrent layer with gradients: rows·weight in each of `steps`
/// iterations, forward and backward, and the weight's gradient of all iterations at once.
std::vector<Products> recurrent(int steps, int rows, int in, int out);

/// Appends all lists to one.
std::vector<Products> joined(const std::vector<std::vector<Products>>& lists);

/// Returns a run of all products on one thread, by oneDNN's primitives. Weights of products without
/// a batch are packed beforehand, uncounted.
std::function<void()> onednn_products(const std::vector<Products>& products);

}  // namespace reel::bench
