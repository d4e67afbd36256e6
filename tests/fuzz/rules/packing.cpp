// Rules for elements and states that a mask selects.
#include <algorithm>

#include "reel/core/functions/pack.h"
#include "reel/frontend/tree/state_select.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// Operand a with at least one axis; the result has no dims.
bool of_axes(Drafter& d, Instruction& in) {
  const int a = pick_real(d, 1);
  return a >= 0 && gives(d, in, {a}, {});
}

/// Operand a with named dims that are not slices; dims: all of a.
bool all_named(Drafter& d, Instruction& in) {
  if (!d.is_named()) return false;
  const int a = d.pick([&](int v) {
    const std::vector<int>& dims = d.type(v).dims;
    return !d.type(v).is_array && d.type(v).element == real && !dims.empty() &&
           std::all_of(dims.begin(), dims.end(), [&](int dim) {
             return d.dim(dim).whole < 0 && is_subset(d.dim(dim).over, dims);
           });
  });
  if (a < 0) return false;
  in.dims = d.type(a).dims;
  in.constant = draw_number(d);
  return gives(d, in, {a}, d.type(a));
}

}  // namespace

Rules packing_rules() {
  return {
      expression(REEL_EXPRESSION(unpack(sin(pack(a, a > x)), 0, a > x, 0.5 * a)), 3, all_named),
      expression(REEL_EXPRESSION(unpack(cos(pack(a, dims)), 0, dims)), 3, all_named),
      expression(REEL_EXPRESSION(sum(square(pack(a, a > 0.0)))), 2, of_axes),
      expression(
          REEL_EXPRESSION(where_nested(a > x, std::pair{sin(a), a}, std::pair{a, cos(a)}).first), 3,
          all_named),
      expression(REEL_EXPRESSION([&] {
                   const auto [tree, packed] = pack_nested(std::pair{a, cos(a)}, a > x);
                   const std::pair changed{sin(tree.first), tree.second};
                   return unpack_nested(changed, packed, a > x, std::pair{a, a}).first;
                 }()),
                 3, all_named),
  };
}

}  // namespace reel::fuzz
