// Relation: plain, named and ragged forms of one program agree: rows alone, with named dims; rows
// with plain axes under vmap and map; a batch with named dims; a batch with ragged dims.
// Domain: functions of one row that are applied to a batch as they are (riding.h), of rules that
// have a plain form (plain_form.h). All rows have equal sizes.
// Orders: as for vmap and map.
// Tolerance: rounding, since axes have another order.
#include "reel/tests/fuzz/relations/plain_form.h"
#include "reel/tests/fuzz/relations/riding.h"
#include "reel/tests/fuzz/relations/rows.h"

namespace reel::fuzz {
namespace {

/// Returns tensors with plain axes and zeros as padding: all forms have the same.
Tensors plain_forms_of(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& x : tensors) result.push_back(plain_form_of(x));
  return result;
}

Outcome check(Trial& trial) {
  const Program& program = trial.program();
  if (!is_riding(program) || !has_plain_form(program)) return Outcome::does_not_apply;
  Random& random = trial.random();
  const Order order = draw_order(program, random);
  constexpr bool kEqualSizes = true;
  const RowTrial rows(trial, draw_rows(program, random, kEqualSizes), order);
  const Tensors expected = plain_forms_of(rows.alone());
  Reference reference = rows.reference(rows.rows());
  reference.at_moved = [at_moved = reference.at_moved] { return plain_forms_of(at_moved()); };
  const Mode drawn = trial.draw_mode();
  const auto mode = [&] { return random.chance(50) ? &drawn : nullptr; };
  for (const Form& form :
       {Form{.way = Way::vmap, .is_inside = random.chance(50), .mode = mode(), .is_plain = true},
        Form{.way = Way::map, .is_inside = random.chance(50), .mode = mode(), .is_plain = true},
        Form{.way = Way::batched, .mode = mode(), .is_fixed = true},
        Form{.way = Way::batched, .mode = mode()}}) {
    const Tensors actual = rows.at_once(rows.rows(), form);
    trial.expect_same(rows.describe(form), expected,
                      form.is_plain ? actual : plain_forms_of(actual), rows.tolerance(), reference);
  }
  return Outcome::holds;
}

Program draw(std::uint64_t seed, const Rules& rules) {
  Rules fitting;
  for (const Rule* rule : rules)
    if (may_have_plain_form(*rule)) fitting.push_back(rule);
  return generate_riding(seed, fitting);
}

}  // namespace

Relation forms_relation() { return {"forms", check, draw}; }

}  // namespace reel::fuzz
