#include "reel/tests/fuzz/checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "reel/core/mode.h"
#include "reel/core/ops.h"
#include "reel/core/str.h"
#include "reel/frontend/embedding_table.h"
#include "reel/frontend/grad.h"
#include "reel/frontend/jit.h"
#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/compare.h"
#include "reel/tests/threads.h"

namespace reel::fuzz {

namespace {

/// A function in a mode.
struct Runner {
  Function call;
  std::function<int()> trace_count;  ///< empty where nothing is recorded
};
struct Mode {
  const char* name;
  bool is_exact;  ///< the bits of eager mode, rather than the same up to rounding
  Runner (*run)(const Function&, const Passes&);
  Passes passes;
};

/// The same under other blocks, which nobody else holds; what a tape watches it has to see.
Tensors to_be_used_up(Tensors tensors) {
  if (thread_mode.tape) return tensors;
  for (Tensor& tensor : tensors) {
    const Tensor copy(allocate_block(tensor.type()));
    std::memcpy(copy.data<void>(), tensor.data<void>(),
                static_cast<std::size_t>(tensor.type().bytes()));
    tensor = copy;
  }
  return tensors;
}

template <Executor executor, int parallel_iterations = 0>
Runner traced(const Function& f, const Passes& passes) {
  const auto jitted = std::make_shared<Jitted<Function>>(
      jit(f, {.executor = executor, .passes = passes, .parallel_iterations = parallel_iterations}));
  return {[jitted](const Tensors& x) { return (*jitted)(to_be_used_up(x)); },
          [jitted] { return jitted->trace_count(); }};
}

/// Each pass is made or not, as a bit of the seed says: half of all programs go without a given
/// one.
Passes some_passes(std::uint64_t seed) {
  // Seeds that follow each other would have the same high bits (Knuth's multiplicative hash).
  std::uint64_t bits = seed * 0x9E3779B97F4A7C15u >> 32;
  const auto next = [&] {
    const bool result = bits & 1;
    bits >>= 1;
    return result;
  };
  return {.simplify = next(),
          .hoist_invariants = next(),
          .batch_over_time = next() || next(),
          .split_loops = next(),
          .chunk_loops = next() || next(),
          .adjoin_loops = next(),
          .pack_weights = next(),
          .fuse_pointwise = next(),
          .cut_rows = next(),
          .shrink_batch = next(),
          .reuse_memory = next(),
          .chunk_steps = next() ? 3 : 0};
}

/// Every mode but eager, which a program is compared with. Another executor joins by a line.
std::vector<Mode> all_modes(const Program& program) {
  constexpr auto kDataflow = Executor::dataflow;
  constexpr Runner (*kOverlapped[])(const Function&, const Passes&) = {
      traced<kDataflow, 1>, traced<kDataflow, 2>, traced<kDataflow, 10>, traced<kDataflow, 32>};
  return {{"traced", true, traced<Executor::interpreter>, {}},
          {"by tokens", true, kOverlapped[program.seed % 4], {}},
          {"planned", false, traced<Executor::plan>, {}},
          {"chunked", false, traced<Executor::plan>, {.chunk_steps = 2}},
          {"partly planned", false, traced<Executor::plan>, some_passes(program.seed)}};
}

/// Where the checks of a program end.
struct Found {
  Finding finding;
};

/// Without types and numbers, so that the same error of a smaller program is the same.
std::string gist(std::string message) {
  // Some messages begin with a type.
  if (message.find('[') < message.find(": ")) message.erase(0, message.find(": ") + 2);
  std::string result;
  for (const char c : message.substr(0, message.find_first_of("[,(;\n")))
    if (!std::isdigit(c)) result += c;
  return result;
}

/// results of f, and behind them its gradient.
Function with_gradient(const Function& f) {
  return [f](const Tensors& x) {
    const auto [results, gradient] = value_and_grad([&](const Tensors& y) {
      const Tensors all = f(y);
      return std::pair{all[0], all};
    })(x);
    Tensors both = results.second;
    both.insert(both.end(), gradient.begin(), gradient.end());
    return both;
  };
}

bool may_be_table(const TensorType& type) {
  const auto is_static = [](const Dim& dim) { return dim.has_size() && !dim.is_ragged(); };
  return is_float(type.dtype()) && type.rank() > 0 &&
         std::all_of(type.dims().begin(), type.dims().end(), is_static);
}

/// The same, where arguments that can be are tables, whose gradient is rows if they are read by
/// rows alone.
Function with_rows(const Function& f) {
  return [f](const Tensors& x) {
    using Split = std::pair<std::vector<EmbeddingTable>, Tensors>;
    Split split;
    for (const Tensor& argument : x)
      if (may_be_table(argument.type()))
        split.first.emplace_back(argument);
      else
        split.second.push_back(argument);
    const auto joined = [&](const Split& parts) {
      Tensors all;
      std::size_t table = 0, other = 0;
      for (const Tensor& argument : x)
        all.push_back(may_be_table(argument.type()) ? parts.first[table++].to_dense()
                                                    : parts.second[other++]);
      return all;
    };
    const auto [results, gradient] = value_and_grad([&](const Split& parts) {
      const Tensors all = f(joined(parts));
      return std::pair{all[0], all};
    })(split);
    Tensors both = results.second;
    const Tensors whole = joined(gradient);
    both.insert(both.end(), whole.begin(), whole.end());
    return both;
  };
}

/// Arguments, and behind them as many directions -> the gradient's derivative in that direction,
/// and the gradient of that.
Function with_second(const Function& f) {
  return [f](const Tensors& x) {
    const std::size_t n = x.size() / 2;
    const auto slope = [&](const Tensors& all) {
      const Tensors arguments(all.begin(), all.begin() + n);
      const Tensors gradient = grad([&](const Tensors& y) { return f(y)[0]; })(arguments);
      Tensor total;
      for (std::size_t i = 0; i < n; ++i) {
        if (!is_float(gradient[i].dtype())) continue;
        const Tensor part = sum(gradient[i] * all[n + i]);
        total = total.is_defined() ? total + part : part;
      }
      return total;
    };
    const auto [value, gradient] = value_and_grad(slope)(x);
    Tensors both{value};
    both.insert(both.end(), gradient.begin(), gradient.begin() + n);
    return both;
  };
}

class Check {
 public:
  Check(const Program& program, Statistics& statistics)
      : program_(program), statistics_(statistics) {}

  void run(const std::string& kind) {
    const Call here, elsewhere{.is_elsewhere = true};
    arguments_ = make_arguments(program_, here);
    others_ = make_arguments(program_, elsewhere, &arguments_);
    // Fixed dims are the same everywhere; others are found in arguments.
    const Function f = [this](const Tensors& x) { return Machine(program_, arguments_).run(x); };
    const auto asks_for = [&](const char* what) { return kind.find(what) != std::string::npos; };
    const bool all =
        kind.empty() ||
        !(asks_for("values") || asks_for("gradient") || asks_for("padding") || asks_for("second") ||
          asks_for("checkpoint") || asks_for("tables") || asks_for("threads"));
    const bool second = asks_for("second");
    if (all || asks_for("values"))
      compare(
          "values", f, [](const Function& g) { return g; }, 0);
    if (all || (asks_for("gradients") && !second)) compare("gradients", f, with_gradient, kAnyZero);
    if (all || asks_for("checkpoint")) check_checkpoints(f);
    if (all || asks_for("tables")) check_rows(f);
    if (all || asks_for("threads")) check_threads(f);
    if (all || asks_for("padding")) check_padding(f);
    if (all || (asks_for("differences") && !second)) check_differences(f);
    if (all || second) check_second(f);
  }

 private:
  Tensors passed(const Arguments& arguments) const { return passed_arguments(program_, arguments); }

  Tensors call(const std::string& what, const Function& f, const Tensors& x) const {
    manual_seed(program_.seed);
    try {
      Tensors results = f(x);
      results.push_back(random_state());
      return results;
    } catch (const std::exception& error) {
      throw Found{{str(what, " throws: ", gist(error.what())), error.what()}};
    }
  }

  /// Gradients may differ where numbers are not finite: a branch or a loop that is not run gives
  /// zeros in a trace, where it gives nothing eagerly, and zero times infinity is NaN.
  void expect_same(const std::string& what, const Tensors& expected, const Tensors& actual,
                   double tolerance, const Arguments& x) const {
    const auto differs = difference(expected, actual, tolerance);
    if (!differs) return;
    const bool may_differ = tolerance > 0 && !difference(expected, actual, tolerance, true);
    manual_seed(program_.seed);  // what was compared drew the same
    if (may_differ && !Machine(program_, x).stays_finite(passed(x))) return;
    throw Found{{what + " differs", *differs}};
  }

  /// Holds other modes against eager: `make` of the function, in the mode, and `make` of the
  /// function in the mode. The latter is what passes have left of the function, so that its
  /// gradient adds up in another order. Gives what eager gave.
  template <class Make>
  Tensors compare(const std::string& what, const Function& f, const Make& make, double tolerance,
                  const Tensors& here, const Tensors& elsewhere) const {
    const Tensors expected = call("eager " + what, make(f), here);
    const Tensors other = call("eager " + what + " elsewhere", make(f), elsewhere);
    for (const Mode& mode : all_modes(program_)) {
      const std::string name = str(mode.name, ' ', what);
      const Runner outside = mode.run(make(f), mode.passes), inside = mode.run(f, mode.passes);
      const double close = program_.real == f64 ? 1e-10 : 1e-4;
      for (const auto& [form, function, allowed] :
           {std::tuple{name, outside.call, mode.is_exact ? tolerance : std::max(tolerance, close)},
            std::tuple{str(what, " of ", mode.name), make(inside.call),
                       mode.is_exact && !tolerance ? 0 : std::max(tolerance, close)}}) {
        expect_same(form, expected, call(form, function, here), allowed, arguments_);
        expect_same(form + " elsewhere", other, call(form + " elsewhere", function, elsewhere),
                    allowed, others_);
        expect_same(form + " again", expected, call(form + " again", function, here), allowed,
                    arguments_);
      }
      for (const Runner& runner : {outside, inside})
        if (runner.trace_count && runner.trace_count() != 1)
          throw Found{{name + " records again", str(runner.trace_count(), " times")}};
    }
    return expected;
  }
  template <class Make>
  Tensors compare(const std::string& what, const Function& f, const Make& make,
                  double tolerance) const {
    return compare(what, f, make, tolerance, passed(arguments_), passed(others_));
  }

  /// What loops keep for their gradients, and where, as the seed says.
  static Policy some_policy(std::uint64_t seed) {
    const std::uint64_t way = seed / 2 % 3;
    Checkpoint checkpoint = seed % 2 ? Checkpoint::every(static_cast<std::int64_t>(way + 1))
                                     : Checkpoint::budget(way == 0 ? 1 : 400);
    const std::uint64_t more = seed / 6 % 8;
    if (more == 0 || more == 1) checkpoint = {};
    // By the first letter of what makes a value.
    if (more % 2)
      checkpoint = checkpoint.where([seed](const StepValue& value) {
        return Saving((static_cast<std::uint64_t>(value.op[0]) + seed) % 4);
      });
    const bool swaps = more < 4;
    return {checkpoint, swaps ? SwapMemory(Spill{.bytes_in_memory = 1}) : SwapMemory()};
  }

  /// What loops keep for their gradients changes none: in a plan up to rounding, where a loop
  /// without a policy adds up over all steps at once.
  void check_checkpoints(const Function& f) const {
    const Policy policy = some_policy(program_.seed);
    const Function g = [&](const Tensors& x) {
      return Machine(program_, arguments_, policy).run(x);
    };
    const Tensors x = passed(arguments_);
    expect_same("eager checkpoints", call("eager gradients", with_gradient(f), x),
                call("eager checkpoints", with_gradient(g), x), kAnyZero, arguments_);
    const double close = program_.real == f64 ? 1e-10 : 1e-4;
    for (const Mode& mode : all_modes(program_)) {
      const std::string name = str(mode.name, " checkpoints");
      const auto outside = [&](const Function& of) {
        return call(name, mode.run(with_gradient(of), mode.passes).call, x);
      };
      expect_same(name, outside(f), outside(g), mode.is_exact ? kAnyZero : close, arguments_);
      const auto inside = [&](const Function& of) {
        return call(name, with_gradient(mode.run(of, mode.passes).call), x);
      };
      expect_same(str("checkpoints of ", mode.name), inside(f), inside(g),
                  mode.is_exact ? kAnyZero : close, arguments_);
    }
  }

  /// Gradients as rows are those as whole tensors, and the same in all modes.
  void check_rows(const Function& f) const {
    const double close = program_.real == f64 ? 1e-10 : 1e-4;
    const Tensors rows = compare("tables", f, with_rows, kAnyZero);
    expect_same("eager tables", call("eager gradients", with_gradient(f), passed(arguments_)), rows,
                close, arguments_);
  }

  /// A plan gives the same bits on any number of threads.
  void check_threads(const Function& f) const {
    for (const Mode& mode : all_modes(program_)) {
      if (mode.is_exact) continue;
      const auto on = [&](int count) {
        const Threads threads(count);
        return call(str(mode.name, " on threads"), mode.run(with_gradient(f), mode.passes).call,
                    passed(arguments_));
      };
      expect_same(str(mode.name, " on threads"), on(1), on(3), 0, arguments_);
    }
  }

  void check_padding(const Function& f) const {
    // The same dims: those that a program takes from arguments are then the same, too.
    const Arguments clean = make_arguments(program_, {.has_nan = false});
    const Function g = [&](const Tensors& x) { return Machine(program_, clean).run(x); };
    expect_same("padding:", call("without NaN", with_gradient(g), passed(clean)),
                call("eager gradients", with_gradient(f), passed(arguments_)), kAnyZero, clean);
  }

  /// slope: what is claimed; at(h): the function, moved by h. False where the function is not
  /// smooth enough to tell.
  template <class At>
  bool check_slope(const std::string& what, double slope, const At& at, double step) const {
    const double here = at(0), right = at(step), left = at(-step), near_right = at(step / 2),
                 near_left = at(-step / 2);
    const double wide = (right - left) / (2 * step), narrow = (near_right - near_left) / step;
    const double forwards = (right - here) / step, backwards = (here - left) / step;
    const double size = std::max({1., std::abs(wide), std::abs(slope), std::abs(here) * 1e-3});
    // Of large numbers differences say nothing.
    if (!(std::abs(here) < 1e4) || !(std::abs(slope) < 1e7)) return false;
    // A kink or a jump nearby, or a function that bends too much.
    if (!(std::abs(wide - narrow) < 1e-6 * size) ||
        !(std::abs(forwards - backwards) < 1e-3 * size) || !std::isfinite(slope))
      return false;
    if (std::abs(narrow - slope) <= 2e-5 * size) return true;
    // What happens between the points is seen from nearer.
    const double near = step / 1024, nearest = (at(near) - at(-near)) / (2 * near);
    if (!(std::abs(narrow - nearest) < 2e-5 * size)) return false;
    throw Found{{what + " and differences disagree",
                 str("the slope is ", slope, ", differences say ", narrow)}};
  }

  /// Arguments a step away from a point that is none of those where kinks and ties are: arguments
  /// are small fractions.
  Tensors moved(double h) const {
    Tensors x = passed(arguments_);
    const Tensors directions = make_directions(program_, arguments_, {});
    const Tensors aside = make_directions(program_, arguments_, {}, 1);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (is_float(x[i].dtype())) x[i] = x[i] + h * directions[i] + 0.01234567 * aside[i];
    return x;
  }

  void check_differences(const Function& f) const {
    if (program_.real != f64 || !program_.checks_differences) return;
    const Tensors gradients = call("eager gradients", with_gradient(f), moved(0));
    if (!are_finite(gradients)) return;
    const Tensors directions = make_directions(program_, arguments_, {});
    const Tensors gradient(gradients.end() - 1 - directions.size(), gradients.end() - 1);
    const double slope = dot(gradient, directions);
    const auto at = [&](double h) { return call("eager values", f, moved(h))[0].item<double>(); };
    statistics_.compared_with_differences += check_slope("gradient", slope, at, 1e-4);
  }

  void check_second(const Function& f) const {
    bool has_reals = false;
    for (const Tensor& x : passed(arguments_)) has_reals = has_reals || is_float(x.dtype());
    if (program_.real != f64 || !has_reals) return;
    const auto doubled = [&](Tensors x, const Tensors& directions) {
      x.insert(x.end(), directions.begin(), directions.end());
      return x;
    };
    const Tensors directions = make_directions(program_, arguments_, {});
    const Tensors elsewhere = make_directions(program_, others_, {.is_elsewhere = true});
    compare("second gradients", f, with_second, 1e-9, doubled(passed(arguments_), directions),
            doubled(passed(others_), elsewhere));
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

  const Program& program_;
  Statistics& statistics_;
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
  } catch (const Found& found) {
    return found.finding;
  }
  return {};
}

}  // namespace reel::fuzz
