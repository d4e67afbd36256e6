// Rules for optimisers: a few updates of the operand, by gradients that are made from it.
#include "reel/frontend/optimisers/adagrad.h"
#include "reel/frontend/optimisers/adam.h"
#include "reel/frontend/optimisers/ema.h"
#include "reel/frontend/optimisers/lion.h"
#include "reel/frontend/optimisers/rmsprop.h"
#include "reel/frontend/optimisers/schedule.h"
#include "reel/frontend/optimisers/sgd.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {

Rules optimiser_rules() {
  const Typing one = unary(Element::real, Element::real),
               two = binary(Element::real, Element::real);
  return {
      expression(REEL_EXPRESSION([&] {
                   Tensor p = a;
                   Sgd sgd(p, {.learning_rate = 0.5, .momentum = 0.75, .nesterov = true});
                   sgd.update(p, sin(p));
                   sgd.update(p, cos(p));
                   return p;
                 }()),
                 2, one),
      // Gradients are positive: the square root of a moment is not smooth at 0.
      expression(REEL_EXPRESSION([&] {
                   Tensor p = a;
                   Adam adam(p, {.learning_rate = 0.25, .clip_norm = 2});
                   adam.update(p, 1.5 + sin(p));
                   adam.update(p, 2.0 + cos(p));
                   return p;
                 }()),
                 2, one),
      expression(REEL_EXPRESSION([&] {
                   std::pair p{a + b, b};
                   AdamW adam(p, {.learning_rate = 0.25, .weight_decay = 0.5});
                   adam.update(p, std::pair{1.5 + sin(p.first), 1.5 + cos(p.second)});
                   return p.first * p.second;
                 }()),
                 2, two),
      expression(REEL_EXPRESSION([&] {
                   Tensor p = a;
                   RmsProp rmsprop(p, {.learning_rate = 0.25, .momentum = 0.5, .centered = true});
                   rmsprop.update(p, 1.5 + sin(p));
                   rmsprop.update(p, 2.0 + cos(p));
                   return p;
                 }()),
                 2, one),
      expression(REEL_EXPRESSION([&] {
                   Tensor p = a;
                   Sgd sgd(p, {.learning_rate = 0.5, .momentum = 0.75, .weight_decay = 0.25});
                   sgd.update(p, sin(p));
                   sgd.update(p, cos(p));
                   return p;
                 }()),
                 2, one),
      expression(REEL_EXPRESSION([&] {
                   Tensor p = a;
                   Adagrad adagrad(p, {.learning_rate = 0.25, .initial_sum = 0.5});
                   adagrad.update(p, 1.5 + sin(p));
                   adagrad.update(p, 2.0 + cos(p));
                   return p;
                 }()),
                 2, one),
      // Gradients are positive: the sign of a momentum jumps at 0.
      expression(REEL_EXPRESSION([&] {
                   Tensor p = a;
                   Lion lion(p, {.learning_rate = 0.25, .weight_decay = 0.5});
                   lion.update(p, 1.5 + sin(p));
                   lion.update(p, 2.0 + cos(p));
                   return p;
                 }()),
                 2, one),
      expression(REEL_EXPRESSION([&] {
                   Ema ema(a, {.decay = 0.75});
                   ema.update(sin(a));
                   ema.update(a);
                   return ema.average();
                 }()),
                 2, one),
  };
}

}  // namespace reel::fuzz
