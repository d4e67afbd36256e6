// Relation: vmap of a function of one row, map of it, and the function of each row alone give the
// same rows.
// Domain: all programs without random numbers, as functions of one row. Along a named dim of the
// rows, dims that come with arguments have another length in each; arguments that rows share may
// lack the dim. Results with dims that only a run knows are left out.
// Orders: values, gradients, gradients of gradients, tangents, tangents of gradients; taken in each
// row, or of all rows at once.
// Tolerance: rounding, since rows are reduced in another order.
#include "reel/tests/fuzz/relations/rows.h"

namespace reel::fuzz {
namespace {

Outcome check(Trial& trial) {
  const Order order = draw_order(trial.program(), trial.random());
  const RowTrial rows(trial, draw_rows(trial.program(), trial.random()), order);
  const Tensors expected = rows.alone();
  const Reference reference = rows.reference(rows.rows());
  const Mode mode = trial.draw_mode();
  const bool is_inside = trial.random().chance(65);
  for (const Form& form : {Form{.way = Way::vmap, .is_inside = is_inside},
                           Form{.way = Way::vmap, .is_inside = is_inside, .mode = &mode},
                           Form{.way = Way::map,
                           .is_inside = !is_inside,
                           .mode = trial.random().chance(50) ? &mode : nullptr}})
    trial.expect_same(rows.describe(form), expected, rows.at_once(rows.rows(), form),
                      rows.tolerance(), reference);
  return Outcome::holds;
}

}  // namespace

Relation vmap_and_map_relation() { return {"vmap and map", check, generate_row}; }

}  // namespace reel::fuzz
