// Rules for integers. They stay small, so that they can be indices and trip counts.
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

/// Makes 0, 1, ... along a dim.
bool count_up(Drafter& d, Instruction& in) {
  const std::vector<int> dims = d.pick_dims(1);
  if (dims.empty()) return false;
  in.dims = dims;
  return gives(d, in, {}, {.element = Element::i32, .dims = dims});
}

}  // namespace

Rules integer_rules() {
  const Typing one = unary(Element::i32, Element::i32), two = binary(Element::i32, Element::i32);
  return {
      expression(REEL_EXPRESSION(a + 1), 2, one),
      expression(REEL_EXPRESSION(mod(a + b, 5)), 3, two),
      expression(REEL_EXPRESSION(a * b % 7), 2, two),
      expression(REEL_EXPRESSION(mod(a * 3, 4)), 3, one),
      expression(REEL_EXPRESSION(a / 2), 1, one),
      expression(REEL_EXPRESSION(floor_divide(a, b)), 1, two),
      expression(REEL_EXPRESSION(a % b), 1, two),
      expression(REEL_EXPRESSION(minimum(a, b)), 2, two),
      expression(REEL_EXPRESSION(-a), 1, one),
      expression(REEL_EXPRESSION(clip(a, -1, 3)), 1, one),
      expression(REEL_EXPRESSION(less(a, b)), 3, binary(Element::i32, Element::boolean)),
      expression(REEL_EXPRESSION(a == b), 3, binary(Element::i32, Element::boolean)),
      expression(REEL_EXPRESSION(a > 1), 3, unary(Element::i32, Element::boolean)),
      expression(REEL_EXPRESSION(mod(a, 2) == 0), 3, unary(Element::i32, Element::boolean)),
      expression(REEL_EXPRESSION(cast(a, real)), 4, unary(Element::i32, Element::real)),
      expression(REEL_EXPRESSION(0.25 * cast(a, real)), 4, unary(Element::i64, Element::real)),
      expression(REEL_EXPRESSION(cast(a, i64)), 2, unary(Element::i32, Element::i64)),
      expression(REEL_EXPRESSION(cast(a, i32)), 2, unary(Element::i64, Element::i32)),
      expression(REEL_EXPRESSION(cast(a, i32)), 2, unary(Element::boolean, Element::i32)),
      expression(REEL_EXPRESSION(cast(round(3.0 * tanh(a)), i32)), 3,
                 unary(Element::real, Element::i32)),
      expression(REEL_EXPRESSION(mod(a - b, 3)), 2, binary(Element::i64, Element::i64)),
      expression(REEL_EXPRESSION(range(to)), 2, count_up),
  };
}

}  // namespace reel::fuzz
