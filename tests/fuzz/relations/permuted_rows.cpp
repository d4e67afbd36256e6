// Relation: rows in another order give results in that order.
// Domain: functions of one row, under vmap or map, or applied to a batch (riding.h). Bodies that
// couple rows, random numbers and carries that rows share are no functions of one row.
// Orders: as for vmap and map.
// Tolerance: rounding, since vectors of a kernel hold other rows.
#include <numeric>
#include <utility>

#include "reel/core/ops.h"
#include "reel/tests/fuzz/relations/riding.h"
#include "reel/tests/fuzz/relations/rows.h"

namespace reel::fuzz {
namespace {

/// Returns the rows of a stack with these numbers.
Tensors taken(const Tensors& stacks, const std::vector<int>& numbers) {
  Tensors result;
  for (const Tensor& stack : stacks) {
    Axis rows = 0;
    Dim to(std::ssize(numbers));
    for (const Dim& dim : stack.dims())
      if (dim.is_named() && dim.name() == "rows") {
        rows = dim;
        to = Dim("rows", std::ssize(numbers));
      }
    result.push_back(gather(stack, tensor(numbers, {to}), rows));
  }
  return result;
}

Outcome check(Trial& trial) {
  Random& random = trial.random();
  const Order order = draw_order(trial.program(), random);
  const RowTrial trials(trial, draw_rows(trial.program(), random), order);
  std::vector<int> numbers(static_cast<std::size_t>(trials.rows().count()));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[static_cast<std::size_t>(random.below(i))]);
  const Rows permuted = trials.rows().take(numbers);

  Form form{.way = is_riding(trial.program()) ? Way::batched
                   : random.chance(75)        ? Way::vmap
                                              : Way::map};
  form.is_inside = form.way != Way::batched && random.chance(50);
  const Mode drawn = trial.draw_mode();
  for (const Mode* mode : {static_cast<const Mode*>(nullptr), &drawn}) {
    form.mode = mode;
    trial.expect_same(trials.describe(form), taken(trials.at_once(trials.rows(), form), numbers),
                      trials.at_once(permuted, form), trials.tolerance(),
                      trials.reference(permuted));
  }
  return Outcome::holds;
}

Program draw(std::uint64_t seed, const Rules& rules) {
  return seed % 2 ? generate_riding(seed, rules) : generate_row(seed, rules);
}

}  // namespace

Relation permuted_rows_relation() { return {"permuted rows", check, draw}; }

}  // namespace reel::fuzz
