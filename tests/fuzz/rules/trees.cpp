// Rules for functions of trees: norms, and functions of each tensor.
#include "reel/frontend/optimisers/clip.h"
#include "reel/frontend/tree/state_select.h"
#include "reel/frontend/tree/tree.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/slices.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// Operand a; the result has no dims.
bool whole(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 0);
  return a >= 0 && gives(d, in, {a}, {});
}

/// Operands a and b; the result has no dims.
bool both_whole(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 0), b = pick_real(d, 0);
  return a >= 0 && gives(d, in, {a, b}, {});
}

/// Operand a, and a dim with a size along which no lengths run.
bool along_alone(Drafter& d, Instruction& in) {
  const int a = d.is_named() ? pick_real(d, 1) : -1;
  const int dim = a < 0 ? -1 : d.pick_axis(a, [](const DimInfo& info) { return info.size > 0; });
  if (dim < 0 || !dims_running_over(d.program(), d.type(a).dims, dim).empty()) return false;
  in.dims = {dim};
  in.numbers = {d.dim(dim).size};
  return gives(d, in, {a}, d.type(a));
}

}  // namespace

Rules tree_rules() {
  const Typing one = unary(real, real), two = binary(real, real);
  return {
      expression(REEL_EXPRESSION(clip_by_value(a, -0.5, 0.75)), 2, one),
      expression(REEL_EXPRESSION(clip_by_global_norm(a, 0.75).first), 2, one),
      expression(REEL_EXPRESSION(clip_by_global_norm(std::pair{a, b}, 1.5).second), 1, both_whole),
      expression(REEL_EXPRESSION(global_norm(std::pair{a, sin(a)})), 2, whole),
      expression(REEL_EXPRESSION([&] {
                   const std::pair tree{a, std::pair{b, sin(a)}};
                   const auto mapped = tree_map(
                       [](const Tensor& t, const Tensor& u) { return tanh(t) * u; }, tree, tree);
                   return mapped.first + mapped.second.first * mapped.second.second;
                 }()),
                 2, two),
      expression(
          REEL_EXPRESSION(gather_nested(std::pair{sin(a), x}, mod(range(to) + 1, n), to).first), 3,
          along_alone),
  };
}

}  // namespace reel::fuzz
