#include "reel/onnx/ops/reshape.h"

#include <algorithm>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/functions/checks.h"
#include "reel/core/functions/elementwise.h"
#include "reel/onnx/ops/sizes.h"
#include "reel/onnx/run_limits.h"

namespace reel::imported {
namespace {

/// The shape that a node gives.
struct GivenShape {
  Dims sizes;                       ///< 1 for the open axis
  std::optional<std::size_t> open;  ///< the axis with the size that follows from the others
  std::optional<Tensor> open_size;  ///< its given size, if only a run knows it
};

/// Collects the numbers of a shape.
class ShapeReader {
 public:
  explicit ShapeReader(const Call& call) : call_(call) {}

  void add(const std::vector<std::int64_t>& sizes) {
    check_rank(call_.node(), sizes.size());
    for (const std::int64_t size : sizes) add(size);
  }
  /// A number that only a run knows counts as open. Throws TraceError if there are several.
  void add(const std::vector<Number>& sizes) {
    for (const Number& size : sizes) {
      add(size.known.value_or(-1));
      if (!size.known) open_size_ = size.traced;
    }
    if (open_.size() > 1) call_.known_integers(1);
  }
  GivenShape finish() const {
    if (open_.size() > 1) call_.refuse("the shape has more than one -1");
    if (open_.empty()) return {sizes_, {}, {}};
    return {sizes_, open_[0], open_size_};
  }

 private:
  void add(std::int64_t size) {
    const std::size_t axis = sizes_.size();
    const Dims& dims = call_.tensor(0).dims();
    if (size == 0 && !call_.flag("allowzero", false)) {
      if (axis >= dims.size())
        call_.refuse(str("axis ", axis, " of the shape is 0, but x lacks it"));
      sizes_.push_back(dims[axis]);
    } else {
      sizes_.push_back(size < 0 ? Dim(1) : Dim(size));
    }
    if (size == -1) open_.push_back(axis);
    if (size < -1) call_.refuse(str("the shape has the size ", size));
  }

  const Call& call_;
  Dims sizes_;
  std::vector<std::size_t> open_;  ///< axes
  std::optional<Tensor> open_size_;
};

GivenShape read_shape(const Call& call) {
  const bool is_input = call.version() >= 5;
  if (is_input && call.in(1).sizes) return {*call.in(1).sizes, {}, {}};
  ShapeReader reader(call);
  if (!is_input)
    reader.add(call.integers("shape"));
  else if (call.is_known(1))
    reader.add(call.known_integers(1));
  else
    reader.add(elements_of(call, 1));
  return reader.finish();
}

std::int64_t product_in_range(const Call& call, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    call.refuse("the sizes of the shape are out of range");
  return product;
}

/// Solves for the open size if all sizes are known.
std::int64_t solve_known(const Call& call, const Dims& sizes) {
  const Tensor& x = call.tensor(0);
  std::int64_t others = 1;
  for (const std::int64_t size : numbers_of(sizes)) others = product_in_range(call, others, size);
  if (others == 0 || x.numel() % others)
    throw ShapeError(str("Reshape: ", x.type(), " has ", x.numel(),
                         " elements, which are no multiple of the given sizes' ", others));
  return x.numel() / others;
}

/// The open size times `divisor` is the product of the sizes of `dims`.
struct OpenEquation {
  Dims dims;
  std::int64_t divisor = 1;
};
/// Returns the equation without the axes that both shapes share, as they cancel each other. Returns
/// nullopt if another size that only a run knows remains in the divisor.
std::optional<OpenEquation> cancelled(const Call& call, const GivenShape& shape) {
  OpenEquation result{call.tensor(0).dims()};
  for (std::size_t i = 0; i < shape.sizes.size(); ++i) {
    if (i == shape.open) continue;
    const Dim& size = shape.sizes[i];
    const auto same = std::find(result.dims.begin(), result.dims.end(), size);
    if (same != result.dims.end())
      result.dims.erase(same);
    else if (size.has_size())
      result.divisor = product_in_range(call, result.divisor, size.size());
    else
      return std::nullopt;
  }
  return result;
}

/// Returns the open size; unknown, or 1, if none makes the shapes equal: reshape_to() then throws.
Dim solve_open_size(const Call& call, const GivenShape& shape) {
  if (is_known(call.tensor(0).dims()) && is_known(shape.sizes))
    return solve_known(call, shape.sizes);
  const std::optional<OpenEquation> open = cancelled(call, shape);
  if (!open) return Dim::unknown();
  if (is_known(open->dims)) {
    std::int64_t product = 1;
    for (const std::int64_t size : numbers_of(open->dims)) product *= size;
    const bool is_solvable = open->divisor > 0 && product % open->divisor == 0;
    return is_solvable ? product / open->divisor : 1;
  }
  if (open->dims.size() != 1) return Dim::unknown();
  // If x is empty, any size solves the equation, and the given one may be another.
  if (shape.open_size && contains(shape.sizes, Dim(0)))
    assert_that(equal(*shape.open_size, value_of_size(open->dims[0]).tensor),
                "Reshape: the size is that of x", *shape.open_size);
  return open->divisor == 1 ? open->dims[0] : Dim::unknown();
}

}  // namespace

Values run_reshape(const Call& call) {
  GivenShape shape = read_shape(call);
  if (shape.open) shape.sizes[*shape.open] = solve_open_size(call, shape);
  return {call.like(0, reshape_to(call.tensor(0), shape.sizes))};
}

}  // namespace reel::imported
