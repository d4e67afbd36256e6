// Rules for check_numerics and assert_that. The checked values are right, and padding is not.
#include <cmath>

#include "reel/core/functions/checks.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {

Rules check_rules() {
  const Typing one = unary(Element::real, Element::real);
  return {
      expression(REEL_EXPRESSION(isinf(a)), 1, unary(Element::real, Element::boolean)),
      // The result has the gradient of a. A gradient of a checked value is checked as well, and a
      // program may make it infinite.
      expression(
          REEL_EXPRESSION(where(
              isnan(check_numerics(
                  mask_padding(stop_gradient(tanh(where(isfinite(a), a, zeros_like(a)))), NAN),
                  "checked")),
              zeros_like(a), a)),
          3, one),
      expression(
          REEL_EXPRESSION(where(assert_that(mask_padding(square(a) >= 0.0 || isnan(a), false),
                                            "squares are not negative", a),
                                sin(a), a)),
          3, one),
  };
}

}  // namespace reel::fuzz
