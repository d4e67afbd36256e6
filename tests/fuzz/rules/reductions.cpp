// Rules for reductions, softmax and running sums.
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr Element real = Element::real;

/// Removes one axis.
Typing position(Element from) {
  return [=](Drafter& d, Instruction& in) {
    if (!reduction(from, Element::i32)(d, in)) return false;
    return in.axes.size() == 1;
  };
}

/// Keeps plain axes with size 1.
bool keep(Drafter& d, Instruction& in) {
  if (d.is_named() || !along_some(real)(d, in)) return false;
  for (const int axis : in.axes) {
    const int one = d.plain(1);
    d.program().values[in.outputs[0]].dims[axis] = one;
  }
  return true;
}

Typing everything(Element from, Element to) {
  return [=](Drafter& d, Instruction& in) {
    const int a = d.pick(from);
    return a >= 0 && gives(d, in, {a}, {.element = to});
  };
}

}  // namespace

Rules reduction_rules() {
  const Typing away = reduction(real, real);
  return {
      expression(REEL_EXPRESSION(sum(a, axes)), 10, away),
      expression(REEL_EXPRESSION(mean(a, axes)), 5, away),
      expression(REEL_EXPRESSION(prod(a, axes)), 4, away),
      expression(REEL_EXPRESSION(max(a, axes)), 4, away),
      expression(REEL_EXPRESSION(min(a, axes)), 3, away),
      expression(REEL_EXPRESSION(variance(a, axes)), 3, away),
      expression(REEL_EXPRESSION(logsumexp(a, axes)), 4, away),
      expression(REEL_EXPRESSION(sum(a)), 4, everything(real, real)),
      expression(REEL_EXPRESSION(sum(0.5 * a + sin(a))), 2, everything(real, real)),
      expression(REEL_EXPRESSION(sum(a, axes, Keep::yes)), 3, keep),
      expression(REEL_EXPRESSION(max(a, axes, Keep::yes)), 2, keep),
      expression(REEL_EXPRESSION(mean(a, axes, Keep::yes)), 2, keep),
      expression(REEL_EXPRESSION(sum(a, axes)), 2, reduction(Element::i32, Element::i32)),
      expression(REEL_EXPRESSION(max(a, axes)), 1, reduction(Element::i64, Element::i64)),
      expression(REEL_EXPRESSION(any(a, axes)), 3, reduction(Element::boolean, Element::boolean)),
      expression(REEL_EXPRESSION(all(a)), 3, everything(Element::boolean, Element::boolean)),
      expression(REEL_EXPRESSION(argmax(a, axis)), 2, position(real)),
      expression(REEL_EXPRESSION(argmin(a, axis)), 2, position(Element::i32)),
      expression(REEL_EXPRESSION(softmax(a, axes)), 4, along_some(real)),
      expression(REEL_EXPRESSION(log_softmax(a, axes)), 4, along_some(real)),
      expression(REEL_EXPRESSION(cumsum(a, axis)), 3, along(real)),
      expression(REEL_EXPRESSION(cumsum(a, axis, {.exclusive = true, .reverse = true})), 3,
                 along(real)),
      expression(REEL_EXPRESSION(cumprod(a, axis)), 3, along(real)),
      expression(REEL_EXPRESSION(cumprod(a, axis, {.exclusive = true})), 2, along(real)),
      expression(REEL_EXPRESSION(cumsum(a, axis)), 1, along(Element::i32)),
  };
}

}  // namespace reel::fuzz
