#include "reel/tests/fuzz/checks.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/modes.h"
#include "reel/tests/fuzz/shrinking/variants.h"
#include "reel/tests/threads.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel::fuzz {
namespace {

/// Tolerance of second gradients, relative to the largest element.
constexpr double kOfSecond = 1e-9;

class Check {
 public:
  Check(const Program& program, Statistics& statistics)
      : program_(program), statistics_(statistics) {}

  void run(const std::string& kind) {
    arguments_ = make_arguments(program_, {});
    others_ = make_arguments(program_, {.is_elsewhere = true}, &arguments_);
    // Fixed dims are equal in all calls; the machine reads others from the arguments.
    const Function f = [this](const Tensors& x) { return Machine(program_, arguments_).run(x); };
    const auto asks_for = [&](const char* what) { return kind.find(what) != std::string::npos; };
    const bool all =
        kind.empty() ||
        !(asks_for("values") || asks_for("gradient") || asks_for("padding") || asks_for("second") ||
          asks_for("checkpoint") || asks_for("truncate") || asks_for("tables") ||
          asks_for("threads") || asks_for("tangents") || asks_for("third"));
    const bool second = asks_for("second");
    const bool higher = second || asks_for("tangents") || asks_for("third");
    if (all || asks_for("values"))
      compare(
          "values", f, [](const Function& g) { return g; }, 0);
    if (all || (asks_for("gradients") && !higher)) compare("gradients", f, with_gradient, kAnyZero);
    if (all || (asks_for("checkpoint") && !higher)) {
      check_checkpoints(f);
      check_checkpoints_of_plans(f);
    }
    if (all || asks_for("truncate")) check_truncate(f);
    if (all || asks_for("tables")) check_rows(f);
    if (all || asks_for("threads")) check_threads(f);
    if (all || asks_for("padding")) check_padding(f);
    if (all || (asks_for("differences") && !higher)) check_differences(f);
    if (all || second) check_second();
    // These checks take the most time, so each program gets at most one check.
    const auto is_chosen = [&](const char* what, std::uint64_t which) {
      return asks_for(what) || (all && program_.seed % 8 == which);
    };
    if (!asks_for("tangents of") && (is_chosen("tangents", 1) || is_chosen("tangents", 5)))
      check_higher("tangents", with_tangents, 1e-9, kind);
    if (has_derivatives(program_)) return;  // with the checks below: up to fifth order
    if (is_chosen("tangents of gradients", 3) || is_chosen("tangents of gradients", 7))
      check_higher("tangents of gradients", with_tangents_of_gradients, 1e-9, kind);
    if (is_chosen("third derivatives", 6))
      check_higher("third derivatives", with_third, 1e-8, kind);
  }

 private:
  /// Tolerance of sums of a few elements.
  double close() const { return program_.real == f64 ? 1e-10 : 1e-4; }
  Tensors passed(const Arguments& arguments) const { return passed_arguments(program_, arguments); }
  /// Returns the arguments of a call, followed by as many directions if has_directions.
  Tensors inputs(const Call& call, bool has_directions) const {
    const Arguments arguments = make_arguments(program_, call, &arguments_);
    Tensors x = passed(arguments);
    if (!has_directions) return x;
    const Tensors directions = make_directions(program_, arguments, call);
    x.insert(x.end(), directions.begin(), directions.end());
    return x;
  }

  Tensors call(const std::string& what, const Function& f, const Tensors& x) const {
    manual_seed(program_.seed);
    try {
      Tensors results = f(x);
      results.push_back(random_state());
      return results;
    } catch (const std::exception& error) {
      throw FoundError{{str(what, " throws: ", gist(error.what())), error.what()}};
    }
  }

  /// Throws FoundError if results differ. Gradients may differ if a value of the program is not
  /// finite: a branch or loop that does not run sends zeros in a trace and nothing in eager mode,
  /// and zero times infinity is NaN.
  void expect_same(const std::string& what, const Tensors& expected, const Tensors& actual,
                   double tolerance, const Arguments& x) const {
    // If a program contains derivatives, its values are gradients, and its gradients second
    // gradients.
    if (tolerance < kOfSecond && has_derivatives(program_)) tolerance = kOfSecond;
    const auto differs = difference(expected, actual, tolerance);
    if (!differs) return;
    const bool may_differ = tolerance > 0 && !difference(expected, actual, tolerance, true);
    manual_seed(program_.seed);  // the draws of the compared runs
    if (may_differ && !Machine(program_, x).stays_finite(passed(x))) return;
    throw FoundError{{what + " differs", *differs}};
  }

  /// Compares each mode with eager mode, in two forms: make(f) run in the mode, and `make` applied
  /// to f run in the mode. In the second form passes have changed f, so its gradient adds up in
  /// another order. Returns the eager results.
  template <class Make>
  Tensors compare(const std::string& what, const Function& f, const Make& make, double tolerance,
                  bool has_directions = false) const {
    const auto at = [&](bool is_elsewhere, bool is_static) {
      return inputs({.is_elsewhere = is_elsewhere, .is_static = is_static}, has_directions);
    };
    const Tensors expected = call("eager " + what, make(f), at(false, false));
    const Tensors other = call("eager " + what + " elsewhere", make(f), at(true, false));
    for (const Mode& mode : all_modes(program_)) {
      const Tensors here = at(false, mode.takes_static), elsewhere = at(true, mode.takes_static);
      const std::string name = str(mode.name, ' ', what);
      const Runner outside = mode.run(make(f), mode.passes), inside = mode.run(f, mode.passes);
      for (const auto& [form, function, allowed] :
           {std::tuple{name, outside.call,
                       mode.is_exact ? tolerance : std::max(tolerance, close())},
            std::tuple{str(what, " of ", mode.name), make(inside.call),
                       mode.is_exact && !tolerance ? 0 : std::max(tolerance, close())}}) {
        expect_same(form, expected, call(form, function, here), allowed, arguments_);
        expect_same(form + " elsewhere", other, call(form + " elsewhere", function, elsewhere),
                    allowed, others_);
        expect_same(form + " again", expected, call(form + " again", function, here), allowed,
                    arguments_);
      }
      // If a plan fails, the interpreter runs the call silently.
      if (!mode.is_exact && outside.explain().find("because its plan failed") != std::string::npos)
        throw FoundError{{name + " is left to the interpreter", outside.explain()}};
      for (const Runner& runner : {outside, inside})
        if (runner.trace_count && runner.trace_count() != 1)
          throw FoundError{{name + " records again", str(runner.trace_count(), " times")}};
    }
    return expected;
  }

  /// Returns another program as a function, with the captures of this one.
  Function variant(Program program) const {
    return [this, program = std::make_shared<const Program>(std::move(program))](const Tensors& x) {
      return Machine(*program, arguments_).run(x);
    };
  }

  /// Compares eager results with another program's. Other modes need no comparison, since
  /// they are compared with eager mode.
  template <class Make>
  void expect_same_as(const Program& other, const std::string& what, const Make& make,
                      const Tensors& actual, const Tensors& x, double tolerance) const {
    expect_same(what, call("eager " + what, make(variant(other)), x), actual, tolerance,
                arguments_);
  }

  /// Policies of loops change no gradient. checkpoint(f) only changes the order in which gradients
  /// of captures of f are added up.
  void check_checkpoints(const Function& f) const {
    if (!has_policies(program_) && !has_checkpointed(program_)) return;
    const Tensors x = passed(arguments_), actual = call("eager gradients", with_gradient(f), x);
    if (has_policies(program_))
      expect_same_as(without_policies(program_), "checkpoints of loops", with_gradient, actual, x,
                     kAnyZero);
    if (has_checkpointed(program_))
      expect_same_as(without_checkpointed(program_), "checkpoints of functions", with_gradient,
                     actual, x, close());
  }

  /// Compares plans with and without policies: their gradients add up in another order than eager
  /// gradients. A loop that only one plan cuts into row blocks or chunks adds up in another order.
  void check_checkpoints_of_plans(const Function& f) const {
    if (!has_policies(program_)) return;
    const Tensors x = passed(arguments_);
    for (const Mode& mode : all_modes(program_)) {
      if (mode.is_exact || !has_all_passes(mode.passes)) continue;
      const std::string name = str(mode.name, " gradients");
      const Runner kept = mode.run(with_gradient(variant(without_policies(program_))), mode.passes),
                   again = mode.run(with_gradient(f), mode.passes);
      const Tensors expected = call(name + " that keep all", kept.call, x),
                    actual = call(name, again.call, x);
      const bool cuts_alike = cuts(kept.explain()) == cuts(again.explain());
      expect_same(name + ", checkpoints of loops", expected, actual,
                  cuts_alike ? kAnyZero : close(), arguments_);
    }
  }
  /// Returns how often an explanation of a plan mentions row blocks and chunks.
  static std::pair<std::size_t, std::size_t> cuts(const std::string& explanation) {
    const auto count = [&](std::string_view text) {
      std::size_t result = 0, at = 0;
      for (; (at = explanation.find(text, at)) != std::string::npos; ++at) ++result;
      return result;
    };
    return {count("  cut: "), count(" chunk")};
  }
  static bool has_all_passes(const Passes& passes) {
    Passes all;
    all.chunk_steps = passes.chunk_steps;
    all.block_rows = passes.block_rows;
    all.pack_small = passes.pack_small;
    return passes == all;
  }

  /// truncate cuts gradients at the iterations at which a body would cut them by hand. A piece of
  /// all iterations cuts nothing.
  void check_truncate(const Function& f) const {
    if (!has_truncate(program_)) return;
    const Tensors x = passed(arguments_);
    expect_same_as(cut_by_hand(program_), "truncate by hand", with_gradient,
                   call("eager gradients", with_gradient(f), x), x, close());
    const Program all = with_truncate(program_, kAllSteps), none = with_truncate(program_, 0);
    expect_same_as(none, "truncate of all steps", with_gradient,
                   call("eager truncate of all steps", with_gradient(variant(all)), x), x,
                   kAnyZero);
    const std::vector<Mode> modes = all_modes(program_);
    const Mode& mode = modes[program_.seed % modes.size()];
    const auto in_mode = [&](const Program& program) {
      return call(str(mode.name, " truncate of all steps"),
                  mode.run(with_gradient(variant(program)), mode.passes).call, x);
    };
    expect_same(str(mode.name, " truncate of all steps"), in_mode(none), in_mode(all),
                mode.is_exact ? kAnyZero : close(), arguments_);
  }

  /// Gradients as rows equal whole gradients, in all modes.
  void check_rows(const Function& f) const {
    const Tensors rows = compare("tables", f, with_rows, kAnyZero);
    expect_same("eager tables", call("eager gradients", with_gradient(f), passed(arguments_)), rows,
                close(), arguments_);
  }

  /// A plan returns the same bits on any number of threads.
  void check_threads(const Function& f) const {
    for (const Mode& mode : all_modes(program_)) {
      if (mode.is_exact || !has_all_passes(mode.passes)) continue;
      const auto on = [&](int count) {
        const Threads threads(count);
        return call(str(mode.name, " on threads"), mode.run(with_gradient(f), mode.passes).call,
                    passed(arguments_));
      };
      expect_same(str(mode.name, " on threads"), on(1), on(3), 0, arguments_);
    }
  }

  void check_padding(const Function& f) const {
    // The machine gets `clean` too: fixed dims must be the Dims of the arguments.
    const Arguments clean = make_arguments(program_, {.has_nan = false});
    const Function g = [&](const Tensors& x) { return Machine(program_, clean).run(x); };
    expect_same("padding:", call("without NaN", with_gradient(g), passed(clean)),
                call("eager gradients", with_gradient(f), passed(arguments_)), kAnyZero, clean);
  }

  /// Compares a slope with differences of at(h), the function at a distance h. Returns false if the
  /// function is not smooth enough to tell. Throws FoundError if they disagree.
  template <class At>
  bool check_slope(const std::string& what, double slope, const At& at, double step) const {
    const double here = at(0), right = at(step), left = at(-step), near_right = at(step / 2),
                 near_left = at(-step / 2);
    const double wide = (right - left) / (2 * step), narrow = (near_right - near_left) / step;
    const double forwards = (right - here) / step, backwards = (here - left) / step;
    const double size = std::max({1., std::abs(wide), std::abs(slope), std::abs(here) * 1e-3});
    // Differences of large numbers are inexact.
    if (!(std::abs(here) < 1e4) || !(std::abs(slope) < 1e7)) return false;
    // A kink or a jump nearby, or too much curvature.
    if (!(std::abs(wide - narrow) < 1e-6 * size) ||
        !(std::abs(forwards - backwards) < 1e-3 * size) || !std::isfinite(slope))
      return false;
    if (std::abs(narrow - slope) <= 2e-5 * size) return true;
    // A smaller step shows ripples between the points.
    const double near = step / 1024, nearest = (at(near) - at(-near)) / (2 * near);
    if (!(std::abs(narrow - nearest) < 2e-5 * size)) return false;
    throw FoundError{{what + " and differences disagree",
                      str("the slope is ", slope, ", differences say ", narrow)}};
  }

  /// Returns arguments at a distance h from a base point. The base point lies aside of the drawn
  /// arguments, since these are small fractions, often on kinks and ties.
  Tensors moved(double h) const {
    Tensors x = passed(arguments_);
    const Tensors directions = make_directions(program_, arguments_, {});
    const Tensors aside = make_directions(program_, arguments_, {}, 1);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (is_float(x[i].dtype())) x[i] = x[i] + h * directions[i] + 0.01234567 * aside[i];
    return x;
  }

  void check_differences(const Function& f) const {
    if (program_.real != f64 || !program_.checks_differences || !passes_reals()) return;
    const Tensors gradients = call("eager gradients", with_gradient(f), moved(0));
    if (!are_finite(gradients)) return;
    const Tensors directions = make_directions(program_, arguments_, {});
    const Tensors gradient(gradients.end() - 1 - directions.size(), gradients.end() - 1);
    const double slope = dot(gradient, directions);
    const auto at = [&](double h) { return call("eager values", f, moved(h))[0].item<double>(); };
    statistics_.compared_with_differences += check_slope("gradient", slope, at, 1e-4);
  }

  /// Returns true if some argument has a gradient.
  bool passes_reals() const {
    return std::ranges::any_of(passed(arguments_),
                               [](const Tensor& x) { return is_float(x.dtype()); });
  }

  void check_second() const {
    if (program_.real != f64 || !passes_reals()) return;
    const auto doubled = [&](Tensors x, const Tensors& directions) {
      x.insert(x.end(), directions.begin(), directions.end());
      return x;
    };
    const Tensors directions = make_directions(program_, arguments_, {});
    const Function f = variant(program_);
    const Tensors x = doubled(passed(arguments_), directions);
    const Tensors actual = compare("second gradients", f, with_second, 1e-9, true);
    if (has_policies(program_))
      expect_same_as(without_policies(program_), "second gradients, checkpoints of loops",
                     with_second, actual, x, 1e-9);
    if (has_checkpointed(program_))
      expect_same_as(without_checkpointed(program_), "second gradients, checkpoints of functions",
                     with_second, actual, x, 1e-9);
    if (!program_.checks_differences) return;
    const auto at_step = [&](double h) {
      return call("eager second gradients", with_second(f), doubled(moved(h), directions));
    };
    const Tensors second = at_step(0);
    if (!are_finite(second)) return;
    const Tensors gradient(second.begin() + 1, second.end() - 1);
    const auto at = [&](double h) { return at_step(h)[0].item<double>(); };
    statistics_.second_compared +=
        check_slope("second gradient", dot(gradient, directions), at, 1e-4);
  }

  /// Modes and policies of loops change no derivative in a direction.
  void check_higher(const char* what, Function (*make)(const Function&), double tolerance,
                    const std::string& kind) const {
    bool has_reals = false;
    for (const Tensor& x : passed(arguments_)) has_reals = has_reals || is_float(x.dtype());
    if (program_.real != f64 || !has_reals) return;
    const Tensors x = inputs({}, true);
    const bool is_of_policies = kind.find("checkpoints of loops") != std::string::npos;
    const Tensors actual = is_of_policies ? call(str("eager ", what), make(variant(program_)), x)
                                          : compare(what, variant(program_), make, tolerance, true);
    if (has_policies(program_))
      expect_same_as(without_policies(program_), str(what, ", checkpoints of loops"), make, actual,
                     x, tolerance);
  }

  const Program& program_;
  Statistics& statistics_;
  const SmallSpillBlocks blocks_;  // residuals of small iterations go to a file too
  Arguments arguments_, others_;
};

}  // namespace

std::optional<Finding> check(const Program& program, Statistics* statistics,
                             const std::string& kind) {
  Statistics unused;
  Statistics& counts = statistics ? *statistics : unused;
  ++counts.programs;
  try {
    Check(program, counts).run(kind);
  } catch (const FoundError& found) {
    return found.finding;
  }
  return {};
}

}  // namespace reel::fuzz
