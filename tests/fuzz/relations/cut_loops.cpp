// Relation: a loop equals two loops; the second one begins with the last state of the first.
// Domain: programs with a scan along a dim, without condition, bound, truncate and slices of other
// dims; or with a while_loop. They draw no random numbers: these depend on the loops before.
// Entries of a reverse scan share no state, and their body does not couple them. The state may hold
// arrays, and leaves of every kind.
// Tolerance: rounding: gradients of captures are added up in another order.
#include "reel/tests/fuzz/relations/coupling.h"
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {
namespace {

bool may_be_cut(const Program& program, const Instruction& in) {
  const LoopForm& loop = in.loop;
  if (in.control == Control::while_loop) return true;
  if (in.control != Control::scan || !loop.xs || loop.has_cond || loop.has_bound || loop.truncate ||
      !in.slices.empty())
    return false;
  const int dim = loop.spatial >= 0 ? loop.spatial : program.values[in.inputs[0]].dims[0];
  if (program.dims[dim].kind == DimInfo::Kind::found) return false;
  // Ys are joined entry by entry.
  for (std::size_t i = 0; i + loop.states < in.outputs.size(); ++i)
    if (!is_subset(program.dims[dim].over, program.values[in.outputs[i]].dims)) return false;
  // In reverse, entries begin at their own ends, and a state that they share counts from the first
  // of these in each of the two loops.
  for (int i = 0; loop.reverse && i < loop.states; ++i)
    if (!is_subset(program.dims[dim].over, program.values[in.inputs[loop.xs + i]].dims))
      return false;
  // In reverse, entries begin at their own ends: a body that couples them then takes other elements
  // of each together.
  return !loop.reverse || !couples_entries(program, in, program.dims[dim].over);
}

/// Returns an iteration from 0 to the largest trip count.
int draw_iteration(Trial& trial, const Instruction& in) {
  const Program& program = trial.program();
  if (in.control == Control::while_loop) return trial.random().between(0, 3);
  const int dim = in.loop.spatial >= 0 ? in.loop.spatial : program.values[in.inputs[0]].dims[0];
  return trial.random().between(0, extent(program, dim, {}));
}

Outcome check(Trial& trial) {
  const Program& program = trial.program();
  Program cut = program;
  bool changed = false;
  for_each_block(cut.main, [&](Block& block) {
    for (Instruction& in : block.body) {
      if (!may_be_cut(program, in) || (changed && trial.random().chance(40))) continue;
      in.loop.parts_at = draw_iteration(trial, in);
      changed = true;
    }
  });
  if (!changed) return Outcome::does_not_apply;
  const Arguments arguments = make_arguments(program, {});
  const Tensors x = passed_arguments(program, arguments);
  const Function f = with_gradient(Trial::function_of(program, arguments)),
                 g = with_gradient(Trial::function_of(cut, arguments));
  const Mode mode = trial.draw_mode();
  const Tensors expected = trial.call("eager", f, x);
  const Reference reference = trial.reference(f, x, program, arguments);
  trial.expect_same("eager", expected, trial.call("eager", g, x), trial.close(), reference);
  trial.expect_same(mode.name, expected, trial.call(mode.name, mode.run(g, mode.passes).call, x),
                    trial.close(), reference);
  return Outcome::holds;
}

}  // namespace

Relation cut_loops_relation() {
  return {"cut loops", check, [](std::uint64_t seed, const Rules& rules) {
            return generate(seed, without_draws(rules));
          }};
}

}  // namespace reel::fuzz
