// Rules for folds and map, which call a function for each slice.
#include "reel/frontend/loops/fold.h"

#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// Operand a, and a dim of it along which no lengths run; a plain one has a size. The result lacks
/// it.
bool folded(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1);
  if (a < 0) return false;
  const int axis = d.is_named() ? d.pick_axis(a, [](const DimInfo&) { return true; }) : 0;
  const int dim = d.dim_at(a, axis);
  if (!d.is_named() && !d.dim(dim).has_size()) return false;
  if (!dims_running_over(d.program(), d.type(a).dims, dim).empty()) return false;
  if (!is_subset(d.dim(dim).over, d.type(a).dims)) return false;
  ValueType type{.element = real};
  for (int i = 0; i < d.rank(a); ++i)
    if ((d.is_named() ? d.type(a).dims[i] : i) != axis) type.dims.push_back(d.type(a).dims[i]);
  in.axes = {axis};
  in.dims = {dim};
  in.constant = draw_number(d);
  return gives(d, in, {a}, type);
}

}  // namespace

Rules fold_rules() {
  return {
      expression(REEL_EXPRESSION(
                     foldl([](const Tensor& state, const Tensor& t) { return tanh(state) + t; }, a,
                           sum(zeros_like(a), axes), {.spatial_dim = to})),
                 3, folded),
      expression(REEL_EXPRESSION(foldr(
                     [](const Tensor& state, const Tensor& t) { return sin(state) * t + 0.5; }, a,
                     sum(zeros_like(a), axes), {.spatial_dim = to})),
                 3, folded),
      expression(REEL_EXPRESSION(sum(
                     map([](const Tensor& t) { return sin(t) * t; }, a, {.spatial_dim = to}), 0)),
                 3, folded),
  };
}

}  // namespace reel::fuzz
