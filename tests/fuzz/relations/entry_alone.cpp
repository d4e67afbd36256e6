// Relation: an entry has the same results alone, in a batch, and in a part of the batch.
// Domain: functions of one row that are applied to a batch as they are (riding.h). Bodies that
// couple rows, random numbers and carries that rows share are no functions of one row.
// Orders: as for vmap and map; derivatives are taken of all rows at once.
// Tolerance: rounding, since rows are reduced in another order.
#include "reel/tests/fuzz/relations/riding.h"
#include "reel/tests/fuzz/relations/rows.h"

namespace reel::fuzz {
namespace {

Outcome check(Trial& trial) {
  if (!is_riding(trial.program())) return Outcome::does_not_apply;
  Random& random = trial.random();
  const Order order = draw_order(trial.program(), random);
  const Rows all = draw_rows(trial.program(), random);
  std::vector<int> some;
  for (int i = 0; i < all.count(); ++i)
    if (random.chance(40)) some.push_back(i);
  if (some.empty()) some.push_back(random.below(static_cast<std::size_t>(all.count())));
  const Mode drawn = trial.draw_mode();
  for (const Rows& rows : {all, all.take(some)}) {
    const RowTrial trials(trial, rows, order);
    const Tensors expected = trials.alone();
    for (const Mode* mode : {static_cast<const Mode*>(nullptr), &drawn}) {
      const Form form{.way = Way::batched, .mode = mode};
      trial.expect_same(trials.describe(form), expected, trials.at_once(rows, form),
                        trials.tolerance(), trials.reference(rows));
    }
  }
  return Outcome::holds;
}

}  // namespace

Relation entry_alone_relation() { return {"entry alone", check, generate_riding}; }

}  // namespace reel::fuzz
