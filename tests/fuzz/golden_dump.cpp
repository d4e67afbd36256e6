// Traces drawn programs on one thread and writes explain() of each, so that scripts/golden can tell
// whether a change to the passes left all graphs and plans as they were.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "reel/core/base/str.h"
#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {
namespace {

/// Calls the program and its gradient in the modes with one thread. Appends the text of explain(),
/// or the error.
void explain_all(std::uint64_t seed, std::ostream& out) {
  const Program program = generate(seed, all_rules());
  const Arguments arguments = make_arguments(program, {});
  const Tensors x = passed_arguments(program, arguments);
  const Function f = with_gradient(Trial::function_of(program, arguments));
  for (const Mode& mode : all_modes(program)) {
    const std::string name = mode.name;
    if (name != "traced" && name != "planned" && name != "partly planned") continue;
    out << "==== program " << seed << ", " << name << '\n';
    const Runner runner = mode.run(f, mode.passes);
    try {
      runner.call(x);
      out << runner.explain();
    } catch (const std::exception& error) {
      out << error.what();
    }
    out << '\n';
  }
}

}  // namespace
}  // namespace reel::fuzz

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: golden_dump FILE PROGRAMS\n";
    return 2;
  }
  std::ofstream out(argv[1]);
  for (std::uint64_t seed = 0; seed < std::strtoull(argv[2], nullptr, 10); ++seed)
    reel::fuzz::explain_all(seed, out);
  return out.good() ? 0 : 1;
}
