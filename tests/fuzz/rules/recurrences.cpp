// Rules for linear_scan and associative_scan, and for scans with a body that takes the index and a
// state that begins with the first slice.
#include "reel/core/functions/scans.h"
#include "reel/frontend/loops/associative_scan.h"
#include "reel/frontend/loops/scan.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// Operands a and b, and an axis of a * b.
bool along_product(Drafter& d, Instruction& in) {
  if (!binary(real, real)(d, in) || !d.rank(in.outputs[0])) return false;
  in.axes = {d.pick_axis(in.outputs[0], [](const DimInfo&) { return true; })};
  in.constant = draw_number(d);
  return true;
}

/// Operand a, and an axis along which no lengths run.
bool along_alone(Drafter& d, Instruction& in) {
  if (!along(real)(d, in)) return false;
  const std::vector<int>& dims = d.type(in.inputs[0]).dims;
  return dims_running_over(d.program(), dims, in.axes[0]).empty() &&
         (d.is_named() || d.dim(dims[in.axes[0]]).has_size());
}

/// True if a call has elements along the dim.
bool has_elements(const DimInfo& dim) {
  const auto any = [](const std::vector<int>& lengths) {
    return std::any_of(lengths.begin(), lengths.end(), [](int length) { return length > 0; });
  };
  return dim.size > 0 || (any(dim.lengths) && any(dim.elsewhere));
}

/// Operand a with the scanned dim in front, which is `to`. The result has the dims of a.
bool scanned(Drafter& d, Instruction& in) {
  const int a = d.pick(
      [&](int v) { return !d.type(v).is_array && d.type(v).element == real && d.rank(v) > 0; });
  if (a < 0) return false;
  const int dim = d.type(a).dims[0];
  in.dims = {dim};
  const bool is_whole = is_subset(d.dim(dim).over, d.type(a).dims);
  return is_whole && has_elements(d.dim(dim)) &&
         dims_running_over(d.program(), d.type(a).dims, dim).empty() &&
         gives(d, in, {a}, d.type(a));
}

}  // namespace

Rules recurrence_rules() {
  return {
      expression(REEL_EXPRESSION(linear_scan(sin(a), b, axis)), 4, along_product),
      expression(REEL_EXPRESSION(linear_scan(tanh(a), b, scalar(x, real), axis, {.reverse = true})),
                 4, along_product),
      expression(REEL_EXPRESSION(linear_scan(cos(a), tanh(a), axis, {.input = b})), 3,
                 along_product),
      expression(REEL_EXPRESSION(associative_scan(
                     [](const Tensor& l, const Tensor& r) { return maximum(l, r); }, a, axis)),
                 2, along_alone),
      expression(
          REEL_EXPRESSION(
              associative_scan(
                  [](const std::pair<Tensor, Tensor>& l, const std::pair<Tensor, Tensor>& r) {
                    return std::pair{l.first * r.first, r.first * l.second + r.second};
                  },
                  std::pair{sigmoid(a), tanh(a)}, axis)
                  .second),
          4, along_alone),
      expression(REEL_EXPRESSION(associative_scan(
                     [](const Tensor& l, const Tensor& r) { return l + r + l * r; }, 0.5 * sin(a),
                     axis, {.reverse = true})),
                 3, along_alone),
      expression(REEL_EXPRESSION(
                     scan(Scan{.spatial_dim = to,
                               .initial = [](const Tensor& first) { return tanh(first); },
                               .xs = a,
                               .body =
                                   [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                                     const Tensor next = sin(state + slice);
                                     return std::pair{next * cast(i + 1, slice.dtype()), next};
                                   }})
                         .ys),
                 4, scanned),
      expression(
          REEL_EXPRESSION(
              scan(Scan{.spatial_dim = to,
                        .initial = [](const Tensor& last) { return 0.5 * last; },
                        .xs = a,
                        .body =
                            [](const Tensor& i, const Tensor& slice, const Tensor& state) {
                              return std::pair{state - cast(i, slice.dtype()), sin(state) * slice};
                            },
                        .reverse = true})
                  .ys),
          4, scanned),
  };
}

}  // namespace reel::fuzz
