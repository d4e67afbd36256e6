// tests/fuzz/relations/trial.h — Trial, the runs of a program that a relation compares.
#pragma once

#include <functional>
#include <string>

#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/modes.h"
#include "reel/tests/fuzz/random.h"
#include "reel/tests/fuzz/relations/relation.h"

namespace reel::fuzz {

/// The expected result of a comparison: how it moves with its arguments, and if it is finite.
struct Reference {
  /// Returns the expected results at arguments that have moved by a few roundings. A result that
  /// moves as far as it differs is a matter of rounding: a tie, or a sum that cancels.
  std::function<Tensors()> at_moved;
  /// True if all values of the program are finite. Otherwise elements that are NaN or infinite do
  /// not count: a branch not taken sends zeros in a trace and nothing in eager mode.
  std::function<bool()> stays_finite;
};

/// Thrown if drawn sizes are outside of the domain of a relation.
struct OutsideDomain {};

/// For Trial::function_of().
inline constexpr bool kKnownOnly = true;

/// One check of a relation on a program: its draws, which depend on both, and its comparisons.
class Trial {
 public:
  Trial(const Relation& relation, const Program& program);

  const Program& program() const { return program_; }
  Random& random() { return random_; }

  /// Returns a mode, drawn from all modes.
  Mode draw_mode();
  /// Returns the program as a function of its arguments. Results with dims that only a run knows
  /// are left out if `known_only`. outside: captured dims and tensors. Must outlive the function.
  static Function function_of(const Program& program, const Arguments& outside,
                              bool known_only = false);
  /// Calls f. Throws FoundError if it throws. Before the first comparison, an index that is refused
  /// because an entry is empty throws OutsideDomain: the program needs elements.
  Tensors call(const std::string& what, const Function& f, const Tensors& x) const;
  /// Throws FoundError if results differ.
  void expect_same(const std::string& what, const Tensors& expected, const Tensors& actual,
                   double tolerance, const Reference& reference);
  /// Tolerances of values and gradients in other modes, and of second derivatives.
  double close() const;
  double close_second() const;
  /// Returns x with every float element moved by a few roundings.
  Tensors moved(const Tensors& x) const;
  /// Returns the reference for f at x; `outside` as for function_of().
  Reference reference(const Function& f, const Tensors& x, const Program& program,
                      const Arguments& outside) const;

 private:
  std::string name_;
  const Program& program_;
  Random random_;
  bool has_compared_ = false;
};

/// Returns the rules that draw no random numbers. These depend on the loops before them.
Rules without_draws(const Rules& rules);

/// True for a rule of loops that begin with the first slice: without slices they are an error.
bool needs_slices(const Rule& rule);

/// Redraws the sizes and lengths of dims that come with arguments: 0 to 6, now and then 17 or more;
/// lengths of 0 are frequent. all_empty: all are 0.
void redraw_sizes(Program& program, Random& random, bool all_empty);

}  // namespace reel::fuzz
