// The vjp of a loop: a loop that runs backwards over the same iterations.
//
// Bodies of the loops, in letters:
//   forward:  (i, c, x, k)              -> (c', y, s)
//   saving:   (i, c, x, k)              -> (c', y, r, s)
//   reverse:  (i, c̄', ȳ, s̄, x, r, k)    -> (c̄, x̄, k̄)
// with i the position; c carries, x slices, k captures, y stacks, s sums; r residuals, which are
// further stacks; and c̄ the cotangent of c. In the reverse loop, c̄ are carries; ȳ, x and r slices;
// s̄ and k captures; x̄ stacks; and k̄ sums.
#include "reel/autodiff/reverse_loop.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/zero_unless.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

/// Adds the results of the reverse loop to the cotangents of the forward loop's operands, in the
/// order of the eager tape: captures, slices, initial values, each from the last one on. Inputs
/// that only the body reads have a cotangent only if an iteration ran.
void scatter_cotangents(const LoopApplication& loop, const ReversedGraph& reversed,
                        const SavingLoop& saving, const ReverseLoop& reverse) {
  Vjp& at = loop.at;
  const Tensors all = bind_all(loop_op, reverse.operands, make_attrs(reverse.attrs));
  const auto results = results_of(reverse.attrs, all);
  const Tensor ran = results_of(saving.attrs, saving.results).trips > 0;
  const auto presence = [&](std::size_t number) {
    return results.sums.subspan(reverse.captures.size())[number] > 0;
  };
  // Without an iteration, sizes that only iterations determine are zero.
  const auto sized = [&](const Tensor& cotangent, std::size_t operand) {
    const TensorType& type = cotangent.type();
    const bool is_open = !type.is_list() && has_unknown_size(type);
    return is_open ? zero_unless(ran, cotangent, loop.inputs[operand]) : cotangent;
  };
  for (std::size_t k = 0; k < reverse.captures.size(); ++k) {
    const OperandCotangent& capture = reverse.captures[k];
    at.add(capture.operand, sized(results.sums[k], capture.operand),
           capture.presence ? presence(*capture.presence) : ran);
  }
  const auto rows = results.stacks.subspan(reverse.slices.size());
  for (std::size_t k = 0; k < reverse.tables.size(); ++k)
    at.add_rows(reverse.tables[k], list_concat(rows[2 * k]), list_concat(rows[2 * k + 1]));
  for (std::size_t k = reverse.slices.size(); k-- > 0;) {
    const auto& [operand, path] = reverse.slices[k];
    Tensor cotangent = sized(results.stacks[k], operand);
    if (path)
      at.add(operand, std::move(cotangent), presence(*path));
    else
      at.add(operand, std::move(cotangent));
  }
  for (std::size_t k = results.carries.size(); k-- > 0;) {
    const std::size_t output = reversed.cotangents[k];
    const std::size_t operand = operand_number(loop.attrs, body_output_at(loop.attrs, output));
    if (at.has_cotangent(output))
      at.add(operand, results.carries[k]);
    else
      at.add(operand, results.carries[k], ran);
  }
}

}  // namespace

void loop_vjp(Vjp& at) {
  LoopApplication loop(at);
  const ReversedGraph reversed = reverse_graph(loop.body, reversal_spec(loop, loop.attrs.policy));
  const SavingLoop saving = forward_with_residuals(loop, reversed);
  const ReverseLoop reverse = build_reverse_loop(loop, reversed, saving);
  scatter_cotangents(loop, reversed, saving, reverse);
}

}  // namespace reel
