// Relation: infinity, -infinity and 1e30 in the padding of arguments change no result and no
// gradient. (checks.h has NaN.)
// Domain: programs with a ragged dim among the dims of their arguments.
// Tolerance: bits, except signs of zeros, in eager mode and in a drawn mode.
#include <limits>

#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {
namespace {

bool has_padding(const Program& program) {
  for (const int value : program.main.params)
    for (const int dim : program.values[value].dims)
      if (program.dims[dim].is_ragged()) return true;
  return false;
}

Outcome check(Trial& trial) {
  if (!has_padding(trial.program())) return Outcome::does_not_apply;
  const Arguments clean = make_arguments(trial.program(), {.has_nan = false});
  const Mode mode = trial.draw_mode();
  const auto results = [&](const Arguments& arguments, const char* padding) {
    const Function f = with_gradient(Trial::function_of(trial.program(), arguments));
    const Tensors x = passed_arguments(trial.program(), arguments);
    Tensors both = trial.call(std::string("eager ") + padding, f, x);
    const Tensors in_mode =
        trial.call(std::string(mode.name) + ' ' + padding, mode.run(f, mode.passes).call, x);
    both.insert(both.end(), in_mode.begin(), in_mode.end());
    return both;
  };
  const Tensors expected = results(clean, "small");
  const Reference reference =
      trial.reference(Trial::function_of(trial.program(), clean),
                      passed_arguments(trial.program(), clean), trial.program(), clean);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const auto& [padding, name] :
       {std::pair{kInfinite, "inf"}, std::pair{-kInfinite, "-inf"}, std::pair{1e30, "1e30"}}) {
    const Arguments arguments = make_arguments(trial.program(), {.padding = padding}, &clean);
    trial.expect_same(name, expected, results(arguments, name), kAnyZero, reference);
  }
  return Outcome::holds;
}

}  // namespace

Relation padding_relation() { return {"padding", check, generate}; }

}  // namespace reel::fuzz
