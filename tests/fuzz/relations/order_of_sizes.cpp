// Relation: calls with other sizes and lengths, in any order, do not change the result of a call.
// Domain: programs with dims that come with arguments, without loops that begin with the first
// slice.
// Tolerance: bits between two orders of the calls. Between a mode and eager mode, bits if the mode
// promises them and the program contains no derivatives, as in checks.cpp; otherwise rounding.
#include <utility>

#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/relations/trial.h"
#include "reel/tests/fuzz/shrinking/variants.h"

namespace reel::fuzz {
namespace {

constexpr int kCalls = 4;

bool takes_all_sizes(const Program& program) {
  bool result = true;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body) result = result && !needs_slices(*in.rule);
  });
  return result;
}

bool has_sizes(const Program& program) {
  for (const DimInfo& dim : program.dims)
    if (dim.comes_with_arguments()) return true;
  return false;
}

Outcome check(Trial& trial) {
  const Program& program = trial.program();
  if (!has_sizes(program) || !takes_all_sizes(program)) return Outcome::does_not_apply;
  const Arguments first = make_arguments(program, {});
  const Function f = with_gradient(Trial::function_of(program, first));
  std::vector<Tensors> x;
  std::vector<Tensors> expected;
  for (int i = 0; i < kCalls; ++i) {
    Program sized = program;
    redraw_sizes(sized, trial.random(), trial.random().chance(8));
    x.push_back(passed_arguments(sized, make_arguments(sized, {}, &first)));
    expected.push_back(trial.call("eager", f, x.back()));
  }
  const Mode mode = trial.draw_mode();
  const double tolerance = mode.is_exact && !has_derivatives(program) ? kAnyZero : trial.close();
  const Runner forwards = mode.run(f, mode.passes), backwards = mode.run(f, mode.passes);
  std::vector<Tensors> results;
  for (int i = 0; i < kCalls; ++i) {
    results.push_back(trial.call(mode.name, forwards.call, x[i]));
    trial.expect_same(mode.name, expected[i], results[i], tolerance,
                      trial.reference(f, x[i], program, first));
  }
  for (int i = kCalls; i-- > 0;)
    trial.expect_same(std::string(mode.name) + " in another order", results[i],
                      trial.call(mode.name, backwards.call, x[i]), kAnyZero,
                      trial.reference(f, x[i], program, first));
  return Outcome::holds;
}

}  // namespace

Relation order_of_sizes_relation() { return {"order of sizes", check, generate}; }

}  // namespace reel::fuzz
