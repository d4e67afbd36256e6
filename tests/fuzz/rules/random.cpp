// Rules for random draws, and for tensors without operands.
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

Typing fresh(Element element) {
  return [=](Drafter& d, Instruction& in) {
    in.dims = d.pick_dims(2);
    in.constant = draw_number(d);
    return gives(d, in, {}, {.element = element, .dims = in.dims});
  };
}

Typing along_one(Element element) {
  return [=](Drafter& d, Instruction& in) {
    in.dims = d.pick_dims(1);
    if (in.dims.empty()) return false;
    // The result also has the dims of the lengths.
    ValueType type{.element = element, .dims = d.dim(in.dims[0]).over};
    type.dims.push_back(in.dims[0]);
    return gives(d, in, {}, type);
  };
}

bool drop_axis(Drafter& d, Instruction& in) {
  const int a = d.pick([&](int v) {
    return !d.type(v).is_array && d.type(v).element == Element::real && d.rank(v) > 0;
  });
  if (a < 0) return false;
  in.axes = {d.pick_axis(a, [](const DimInfo&) { return true; })};
  ValueType type{.element = Element::i32};
  for (int i = 0; i < d.rank(a); ++i)
    if ((d.is_named() ? d.type(a).dims[i] : i) != in.axes[0])
      type.dims.push_back(d.type(a).dims[i]);
  return gives(d, in, {a}, type);
}

}  // namespace

Rules random_rules() {
  return {
      expression(REEL_EXPRESSION(random_normal(dims, real)), 5, fresh(Element::real)),
      expression(REEL_EXPRESSION(random_uniform(dims, -1, 1, real)), 4, fresh(Element::real)),
      expression(REEL_EXPRESSION(truncated_normal(dims, 0, 0.5, real)), 2, fresh(Element::real)),
      expression(REEL_EXPRESSION(bernoulli(0.5, dims)), 4, fresh(Element::boolean)),
      expression(REEL_EXPRESSION(full(dims, x, real)), 4, fresh(Element::real)),
      expression(REEL_EXPRESSION(zeros(dims, real)), 3, fresh(Element::real)),
      expression(REEL_EXPRESSION(ones(dims, real)), 1, fresh(Element::real)),
      expression(REEL_EXPRESSION(ones_like(a)), 1, unary(Element::real, Element::real)),
      expression(REEL_EXPRESSION(full(dims, 2, i32)), 3, fresh(Element::i32)),
      expression(REEL_EXPRESSION(full(dims, 1, i64)), 1, fresh(Element::i64)),
      expression(REEL_EXPRESSION(full(dims, true, boolean)), 1, fresh(Element::boolean)),
      expression(REEL_EXPRESSION(full(dims, 0, i32)), 2, fresh(Element::i32)),
      expression(REEL_EXPRESSION(random_integers(dims, -2, 4)), 2, fresh(Element::i32)),
      expression(REEL_EXPRESSION(permutation(to)), 2, along_one(Element::i32)),
      expression(REEL_EXPRESSION(mask(to)), 2, along_one(Element::boolean)),
      // NaN logits, or only -inf logits, are an error.
      expression(REEL_EXPRESSION(categorical(clip(where(isnan(a), zeros_like(a), a), -3, 3), axis)),
                 2, drop_axis),
      expression(REEL_EXPRESSION(dropout(a, 0.25)), 4, unary(Element::real, Element::real)),
      expression(REEL_EXPRESSION(dropout(a, 0.5, axes)), 2, along_some(Element::real)),
  };
}

}  // namespace reel::fuzz
