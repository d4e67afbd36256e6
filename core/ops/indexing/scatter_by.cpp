#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/functions/scatter.h"
#include "reel/core/ops.h"

namespace reel {
namespace {

/// Elements with indices, and the dim of results.
struct IndexedElements {
  std::string_view function;
  const Tensor& x;
  const Tensor& indices;
  Dims over;
  Dim to;

  /// Returns the dims with `to` in the place of the first dim of `over`, without the other dims of
  /// it.
  Dims replaced(const Dims& dims) const {
    Dims result;
    for (const Dim& dim : dims) {
      if (!contains(over, dim))
        result.push_back(dim);
      else if (!contains(result, to))
        result.push_back(to);
    }
    return result;
  }

  void check() const {
    check_defined(function, x);
    check_defined(function, indices);
    if (indices.dtype() != i32 && indices.dtype() != i64)
      throw DTypeError(str(function, ": indices are integers, got ", indices.type()));
    if (x.dtype() == boolean)
      throw DTypeError(str(function, ": x ", x.type(), " is boolean; cast it"));
    if (!to.is_named())
      throw ArgumentError(str(function, ": the dim of the result needs a name, got ", to));
    if (over.empty()) throw ArgumentError(str(function, ": takes dims to replace, got none"));
    for (const Dim& dim : over)
      if (!contains(indices.dims(), dim))
        throw ShapeError(
            str(function, ": indices ", indices.type(), " lack the dim ", dim, " to replace"));
    for (const Dim& dim : indices.dims())
      if (!contains(x.dims(), dim))
        throw ShapeError(
            str(function, ": x ", x.type(), " lacks the dim ", dim, " of the indices"));
    if (contains(x.dims(), to))
      throw ShapeError(str(function, ": x ", x.type(), " has the dim ", to, " of the result"));
  }

  Tensor sum(const Tensor& elements) const {
    return scatter_add(zeros(replaced(elements.dims()), elements.dtype()), indices, elements, to);
  }
  /// Returns the largest elements; the lowest value if there are none.
  Tensor max(const Tensor& elements) const {
    const Dims dims = replaced(elements.dims());
    const Tensor lowest =
        elements.dtype() == i32 ? full(dims, std::numeric_limits<std::int32_t>::min(), i32)
        : elements.dtype() == i64
            ? full(dims, std::numeric_limits<std::int64_t>::min(), i64)
            : full(dims, -std::numeric_limits<double>::infinity(), elements.dtype());
    return scatter_max(lowest, indices, elements, to);
  }
  /// Returns the smallest elements. -1 - x reverses the order of integers, without overflow.
  Tensor min(const Tensor& elements) const {
    return is_float(elements.dtype()) ? -max(-elements) : -1 - max(-1 - elements);
  }
  /// Returns the values of positions at the elements that name them.
  Tensor at_elements(const Tensor& positions) const {
    return expand(gather(positions, indices, to), x.dims());
  }
  Tensor counts() const { return sum(ones(indices.dims(), i32)); }
  Tensor logsumexp() const {
    const Tensor largest = stop_gradient(max(x));
    // An infinite maximum would make differences of infinities.
    const Tensor shift = where(isfinite(largest), largest, 0);
    const Tensor total = sum(exp(x - at_elements(shift)));
    const Tensor is_none = total == 0;
    return where(is_none, -std::numeric_limits<double>::infinity(),
                 log(where(is_none, 1, total)) + shift);
  }
  Tensor with_fill(const Tensor& result, double fill) const {
    return where(expand(counts() > 0, result.dims()), result, full({}, fill, result.dtype()));
  }
};

Tensor reduced(const IndexedElements& s, ScatterBy by) {
  switch (by) {
    case ScatterBy::mean: {
      const Tensor sums = s.sum(s.x);
      return sums / expand(cast(maximum(s.counts(), 1), s.x.dtype()), sums.dims());
    }
    case ScatterBy::max:
      return s.max(s.x);
    case ScatterBy::min:
      return s.min(s.x);
    case ScatterBy::logsumexp:
      return s.logsumexp();
    default:
      return s.sum(s.x);
  }
}

}  // namespace

Tensor scatter(const Tensor& x, const Tensor& indices, const Dims& over, const Dim& to,
               const ScatterOptions& options) {
  const IndexedElements s{"scatter", x, indices, over, to};
  s.check();
  if (!is_float(x.dtype()) && (options.by == ScatterBy::mean || options.by == ScatterBy::logsumexp))
    throw DTypeError(str("scatter: a mean or logsumexp of ", x.type(), ", integers; cast them"));
  const Tensor result = reduced(s, options.by);
  return options.fill ? s.with_fill(result, *options.fill) : result;
}

Tensor scatter_argmax(const Tensor& x, const Tensor& indices, const Dim& over, const Dim& to,
                      int none) {
  const IndexedElements s{"scatter_argmax", x, indices, {over}, to};
  s.check();
  Tensor is_largest = x == s.at_elements(s.max(x));
  if (is_float(x.dtype())) is_largest = is_largest || isnan(x);
  constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  const Tensor first = s.min(where(is_largest, expand(range(over), x.dims()), kNone));
  return where(first == kNone, none, first);
}

}  // namespace reel
