#include "reel/tests/fuzz/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"

namespace reel::fuzz {
namespace {

std::vector<double> values_of(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

/// Returns x with 0 as padding.
Tensor cleared(const Tensor& x) {
  return x.dtype() == boolean ? x && mask_padding(ones_like(x), false) : mask_padding(x);
}

/// Returns x with its dims in the order of the dims of `like` with these names. In eager mode the
/// branch taken decides the order, in a trace the first branch.
Tensor in_order_of(const Tensor& like, const Tensor& x) {
  if (!x.type().is_named() || x.rank() != like.rank()) return x;
  std::vector<Axis> order;
  for (const Dim& dim : like.dims())
    for (int i = 0; i < x.rank(); ++i)
      if (x.dims()[i].name() == dim.name()) order.push_back(i);
  return static_cast<int>(order.size()) == x.rank() ? transpose(x, Axes(order)) : x;
}

std::optional<std::string> lengths_differ(const Tensor& a, const Tensor& b) {
  for (int i = 0; i < a.rank(); ++i) {
    const Dim x = a.dims()[i], y = b.dims()[i];
    if (x.is_named() != y.is_named() || x.is_ragged() != y.is_ragged())
      return str("kinds of dims differ: ", a.type(), " and ", b.type());
    if (x.is_ragged() && values_of(x.lengths()) != values_of(y.lengths()))
      return str("lengths differ: ", x.lengths(), " and ", y.lengths());
  }
  return {};
}

std::optional<std::string> difference(const Tensor& expected, const Tensor& given, double tolerance,
                                      bool finite_only) {
  const Tensor actual = in_order_of(expected, given);
  if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape())
    return str("types differ: ", expected.type(), " and ", actual.type());
  if (const auto differs = lengths_differ(expected, actual)) return differs;
  const Tensor a = cleared(expected), b = cleared(actual);
  const std::vector<double> x = values_of(a), y = values_of(b);
  double largest = 1;
  for (const double value : x)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  const std::size_t size = size_of(a.dtype());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (finite_only && !(std::isfinite(x[i]) && std::isfinite(y[i]))) continue;
    const bool same =
        tolerance > 0 ? x[i] == y[i] || std::abs(x[i] - y[i]) <= tolerance * largest
                      : !std::memcmp(a.data<char>() + i * size, b.data<char>() + i * size, size);
    if (same) continue;
    std::ostringstream out;
    out.precision(17);
    out << "element " << i << " of " << a.type() << " is " << y[i] << " instead of " << x[i];
    return out.str();
  }
  return {};
}

}  // namespace

std::optional<std::string> difference(const Tensors& expected, const Tensors& actual,
                                      double tolerance, bool finite_only) {
  if (expected.size() != actual.size())
    return str(actual.size(), " results instead of ", expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (const auto differs = difference(expected[i], actual[i], tolerance, finite_only))
      return str("result ", i, ": ", *differs);
  return {};
}

double distance(const Tensor& expected, const Tensor& given) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Tensor actual = in_order_of(expected, given);
  if (expected.dtype() != actual.dtype() || expected.shape() != actual.shape() ||
      lengths_differ(expected, actual))
    return kInfinite;
  const std::vector<double> x = values_of(cleared(expected)), y = values_of(cleared(actual));
  double largest = 1, farthest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i])) largest = std::max(largest, std::abs(x[i]));
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return kInfinite;
    farthest = std::max(farthest, std::abs(x[i] - y[i]));
  }
  return farthest / largest;
}

bool are_finite(const Tensors& tensors) {
  for (const Tensor& tensor : tensors)
    if (is_float(tensor.dtype()))
      for (const double value : values_of(mask_padding(tensor)))
        if (!std::isfinite(value)) return false;
  return true;
}

double dot(const Tensors& a, const Tensors& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!is_float(a[i].dtype())) continue;
    const std::vector<double> x = values_of(mask_padding(a[i])), y = values_of(mask_padding(b[i]));
    for (std::size_t k = 0; k < x.size(); ++k) total += x[k] * y[k];
  }
  return total;
}

}  // namespace reel::fuzz
