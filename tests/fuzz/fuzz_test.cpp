// Tests of the fuzzer: it finds an injected defect, makes the program small, and prints it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>

#include "reel/core/ops.h"
#include "reel/frontend/transforms/custom_vjp.h"
#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/checks.h"
#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/derivatives.h"
#include "reel/tests/fuzz/machine.h"
#include "reel/tests/fuzz/modes.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/programs_with.h"
#include "reel/tests/fuzz/program/typing.h"
#include "reel/tests/fuzz/shrinking/variants.h"
#include "reel/tests/threads.h"

namespace reel::fuzz {
namespace {

const Typing kOfReals = unary(Element::real, Element::real);

/// A square with a gradient that is a little too large.
const Rule* wrong_gradient() {
  static const Rule* const rule =
      expression(REEL_EXPRESSION(custom_vjp(
                     [](Tensor t) {
                       return std::pair{square(t), t};
                     },
                     [](Tensor u, Tensor dy) { return 2.1 * u * dy; })(a)),
                 40, kOfReals);
  return rule;
}
/// Adds 1 in a trace.
const Rule* wrong_value() {
  static const Rule* const rule =
      expression(REEL_EXPRESSION(a.is_traced() ? a + 1.0 : a), 40, kOfReals);
  return rule;
}
/// Adds 1 if any element is NaN, padding included.
Tensor with_nan_counted(const Tensor& x) {
  for (const double value : cast(x, f64).to_vector<double>())
    if (std::isnan(value)) return x + 1.0;
  return x;
}
const Rule* reads_padding() {
  static const Rule* const rule = expression(REEL_EXPRESSION(with_nan_counted(a)), 40, kOfReals);
  return rule;
}
const Rule* refuses() {
  static const Rule* const rule = expression(REEL_EXPRESSION(slice(a, 7, 0)), 40, kOfReals);
  return rule;
}
const Rule* refuses_in_traces() {
  static const Rule* const rule =
      expression(REEL_EXPRESSION(a.is_traced() ? slice(a, 7, 0) : a), 40, kOfReals);
  return rule;
}
const Rule* crashes() {
  static const Rule* const rule =
      expression(REEL_EXPRESSION((std::raise(SIGABRT), a)), 40, kOfReals);
  return rule;
}
/// Infinite, depending on a draw. Its gradient is then NaN in a trace and zero in eager mode.
Tensor infinite_at_times(const Tensor& x) {
  const auto f = custom_vjp(
      [](Tensor x) {
        const Tensor is_finite = dropout(ones({}, x.dtype()), 0.5) > 0.0;
        return std::pair{where(is_finite, x, full(x.dims(), HUGE_VAL, x.dtype())), is_finite};
      },
      [](Tensor is_finite, Tensor dy) {
        return where(is_finite, dy, full(dy.dims(), dy.is_traced() ? NAN : 0.F, dy.dtype()));
      });
  return f(x);
}
const Rule* draws_infinity() {
  static const Rule* const rule = expression(REEL_EXPRESSION(infinite_at_times(a)), 40, kOfReals);
  return rule;
}

int count_loops(const Program& program) {
  int result = 0;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body)
      result += in.control == Control::scan || in.control == Control::while_loop;
  });
  return result;
}

std::optional<Finding> check_all(const Program& program, Statistics* statistics) {
  return check(program, statistics);
}

TEST(FuzzTest, FindsAWrongGradient) {
  const auto found = find(wrong_gradient(), "gradient and differences disagree", check_all);
  ASSERT_TRUE(found);
  expect_small(*found, wrong_gradient());
  EXPECT_FALSE(has_policies(*found) || has_checkpointed(*found) || has_truncate(*found));
}

TEST(FuzzTest, FindsModesThatDisagree) {
  const auto found = find(wrong_value(), "traced values differs", check_all);
  ASSERT_TRUE(found);
  expect_small(*found, wrong_value());
}

TEST(FuzzTest, FindsPaddingThatMatters) {
  const auto found =
      find(reads_padding(), "padding: differs", [](const Program& program, Statistics* statistics) {
        return check(program, statistics, "padding: differs");
      });
  ASSERT_TRUE(found);
  expect_small(*found, reads_padding());
}

TEST(FuzzTest, NaNThatOnlyATraceHasIsNoFindingWhereADrawIsInfinite) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Program program = generate(seed, with(draws_infinity()));
    if (!uses(program, draws_infinity())) continue;
    ++count;
    const auto finding = check(program, nullptr, "gradients");
    EXPECT_FALSE(finding) << "seed " << seed << ": " << finding->message;
  }
  EXPECT_GT(count, 10);
}

TEST(FuzzTest, RipplesThatDifferencesDoNotSeeAreNoFinding) {
  static const Rule* const rule =
      expression(REEL_EXPRESSION(a + 3e-11 * sin(3e6 * a)), 40, kOfReals);
  int count = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = generate(seed, with(rule));
    if (!uses(program, rule)) continue;
    Statistics statistics;
    const auto finding = check(program, &statistics, "differences");
    EXPECT_FALSE(finding) << "seed " << seed << ": " << finding->message;
    count += statistics.programs;
  }
  EXPECT_GT(count, 5);
}

TEST(FuzzTest, NoTwoElementsMoveTheSameWay) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Program program = generate(seed, all_rules());
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.values[program.main.params[i]].element != Element::real) continue;
      std::vector<double> moves = direction_values(program, i, {.has_nan = false}, 1);
      std::erase(moves, 0.);  // padding
      std::sort(moves.begin(), moves.end());
      EXPECT_EQ(std::adjacent_find(moves.begin(), moves.end()), moves.end()) << "seed " << seed;
      count += static_cast<int>(moves.size());
    }
  }
  EXPECT_GT(count, 1000);
}

TEST(FuzzTest, FindsErrors) {
  const auto found =
      find(refuses(), "eager values throws: slice: axis  is out of range for f", check_all);
  ASSERT_TRUE(found);
  expect_small(*found, refuses());
}

TEST(FuzzTest, FindsErrorsThatOneModeAloneHas) {
  const auto found = find(refuses_in_traces(),
                          "traced values throws: slice: axis  is out of range for f", check_all);
  ASSERT_TRUE(found);
  expect_small(*found, refuses_in_traces());
}

/// The sum of a value that has a slice among its dims; 1 too large in traces.
class WrongSumOfSlices : public Rule {
 public:
  WrongSumOfSlices() : Rule("wrong sum of slices", 60) {}
  bool draft(Drafter& d, Instruction& in) const override {
    const int a = d.pick([&](int v) {
      const std::vector<int>& dims = d.type(v).dims;
      return d.type(v).element == Element::real && !d.type(v).is_array &&
             std::any_of(dims.begin(), dims.end(), [&](int dim) { return d.dim(dim).whole >= 0; });
    });
    return a >= 0 && gives(d, in, {a}, {});
  }
  void run(const Instruction& in, Machine& machine) const override {
    const Tensor x = machine.tensor(in.inputs[0]);
    machine[in.outputs[0]] = x.is_traced() ? sum(x) + 1.0 : sum(x);
  }
  void print(const Instruction& in, Printer& p) const override {
    p.define(in.outputs[0], "sum(" + p.value(in.inputs[0]) + ")");
  }
};

TEST(FuzzTest, FindsAFaultThatOnlySlicesHave) {
  static const WrongSumOfSlices rule;
  const auto found = find(&rule, "traced values differs", check_all);
  ASSERT_TRUE(found);
  expect_small(*found, &rule, 5, 3);
}

/// Slices along a dim that lengths run over have their own lengths. The drafter knows them, so no
/// mode refuses a program.
TEST(FuzzTest, ProgramsHaveSlicesWithLengthsOfTheirOwn) {
  int of_ops = 0, of_scans = 0, of_three_levels = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Program program = generate(seed, all_rules());
    of_ops += has_instruction(program, [](const Instruction& in) {
      return in.control == Control::none && !in.sliced.empty();
    });
    of_scans += has_instruction(program, [](const Instruction& in) { return !in.slices.empty(); });
    of_three_levels +=
        std::any_of(program.dims.begin(), program.dims.end(), [&](const DimInfo& dim) {
          return std::any_of(dim.over.begin(), dim.over.end(),
                             [&](int over) { return program.dims[over].is_ragged(); });
        });
  }
  EXPECT_GT(of_ops, 20);
  EXPECT_GT(of_scans, 20);
  EXPECT_GT(of_three_levels, 50);
}

TEST(FuzzTest, FindsCrashesInOtherProcesses) {
  const auto found = find(crashes(), "crashes: Aborted", [](const Program& program, Statistics*) {
    return check_isolated(program, check_all, 2);  // some candidates never end
  });
  ASSERT_TRUE(found);
  expect_small(*found, crashes(), 4);  // a crash needs no reader
}

TEST(FuzzTest, ShrunkProgramsCanBePrinted) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Program program = generate(seed, all_rules());
    const int loops = count_loops(program);
    // Loops stay even if they are dead, so the shrinker removes their parts one by one.
    const Program small = shrink(program, [&](const Program& candidate) {
      return !to_source(candidate).empty() && count_loops(candidate) == loops;
    });
    EXPECT_LE(size_of(small), size_of(program));
  }
}

TEST(FuzzTest, TakesAnInstructionOutOfTheBlocksAroundIt) {
  const auto is_inside = [](const Program& program) {
    return std::none_of(program.main.body.begin(), program.main.body.end(),
                        [](const Instruction& in) { return in.rule == refuses(); });
  };
  int count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Program program = generate(seed, with(refuses()));
    if (!uses(program, refuses()) || !is_inside(program)) continue;
    ++count;
    const Program small =
        shrink(program, [](const Program& candidate) { return uses(candidate, refuses()); });
    // The instruction, a constant as its operand, or a loop and its condition if only the loop
    // makes the dim of the operand, and a constant as the loss.
    EXPECT_LE(count_instructions(small), 4) << "seed " << seed << ":\n" << to_source(small);
  }
  EXPECT_GT(count, 10);
}

/// True if a loop runs in several row blocks.
bool is_cut(const std::string& explained) {
  const std::string begin = "  cut: ";
  for (std::size_t at = explained.find(begin); at != std::string::npos;
       at = explained.find(begin, at + 1))
    if (std::stoi(explained.substr(at + begin.size())) > 1) return true;
  return false;
}

/// Each pass must change some programs, otherwise the fuzzer would not check it. explain() reports
/// the changes. (Pipelined loops are not drawn; group_pipelined_loops_test.cpp has them.)
TEST(FuzzTest, SomePlansHaveWorkForPasses) {
  const Threads one(1);
  std::map<std::string, int> plans{
      {" hoisted: ", 0}, {" sunk: ", 0},        {" chunks of ", 0},        {" packed: ", 0},
      {" fused: ", 0},   {", as one batch", 0}, {", grouped by length", 0}};
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Program program = generate(seed, all_rules());
    if (!count_loops(program)) continue;
    const Arguments arguments = make_arguments(program, {});
    const Function f = [&](const Tensors& x) { return Machine(program, arguments).run(x); };
    for (const Mode& mode : all_modes(program)) {
      if (mode.is_exact) continue;
      const Runner runner = mode.run(with_gradient(f), mode.passes);
      try {
        runner.call(passed_arguments(program, arguments));
      } catch (const Error&) {
        continue;
      }
      const std::string text = runner.explain();
      cut += is_cut(text);
      for (auto& [words, count] : plans) count += text.find(words) != std::string::npos;
    }
  }
  EXPECT_GT(cut, 30) << "of some 1500 programs with loops";
  for (const auto& [words, count] : plans) EXPECT_GT(count, 5) << words;
}

TEST(FuzzTest, GoesOnAfterACrash) {
  std::vector<std::uint64_t> seeds;
  const Statistics done = check_many(
      10, 5, all_rules(),
      [](const Program& program, Statistics*) -> std::optional<Finding> {
        if (program.seed == 11) std::abort();
        if (program.seed == 13) return Finding{"kind", "message"};
        return {};
      },
      [&](const Found& found) { seeds.push_back(found.seed); });
  EXPECT_EQ(done.programs, 5);
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{11, 13}));
}

TEST(FuzzTest, TheSameSeedGivesTheSameProgram) {
  EXPECT_EQ(to_source(generate(7, all_rules())), to_source(generate(7, all_rules())));
  EXPECT_NE(to_source(generate(7, all_rules())), to_source(generate(8, all_rules())));
}

TEST(FuzzTest, ProgramsAreOfManyKinds) {
  std::vector<const Rule*> seen;
  int with_loops = 0, checked = 0;
  Statistics statistics;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Program program = generate(seed, all_rules());
    for_each_block(program.main, [&](const Block& block) {
      for (const Instruction& in : block.body) seen.push_back(in.rule);
    });
    with_loops += count_loops(program) > 0;
    if (seed >= 50) continue;
    ++checked;
    const auto finding = check(program, &statistics);
    EXPECT_FALSE(finding) << "seed " << seed << ": " << finding->kind << ": " << finding->message;
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const Rule* rule : all_rules())
    EXPECT_TRUE(std::binary_search(seen.begin(), seen.end(), rule))
        << rule->name() << " never fits";
  EXPECT_GT(with_loops, 1000);
  // Programs in f32, and programs that are not smooth, are not compared with differences.
  EXPECT_GT(statistics.compared_with_differences, checked / 2);
  EXPECT_GT(statistics.second_compared, checked / 2);
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  return text;
}

/// printed_program.cpp, which the build compiles, equals the output of the printer up to white
/// space. It is checked in so that a change of the printed form is visible in a review.
TEST(FuzzTest, PrintsProgramsThatCompile) {
  std::ifstream file(REEL_PRINTED_PROGRAM);
  std::stringstream text;
  text << file.rdbuf();
  const std::string drawn = to_source(generate(REEL_PRINTED_SEED, all_rules()));
  EXPECT_TRUE(without_spaces(drawn) == without_spaces(text.str()))
      << "another program is drawn, or another form printed, than printed_program.cpp has. A new "
         "rule changes what a seed draws. Print it anew, and read the difference:\n"
         "  scripts/run-one fuzz_programs --print "
      << REEL_PRINTED_SEED
      << " | clang-format --assume-filename=a.cpp > printed.cpp\n"
         "  mv printed.cpp tests/fuzz/program/printed_program.cpp; git diff tests/fuzz/program";
}

TEST(FuzzTest, PrintsTheFoundProgram) {
  const auto found = find(wrong_gradient(), "gradient and differences disagree", check_all);
  ASSERT_TRUE(found);
  const std::string source = to_source(*found);
  EXPECT_NE(source.find("[](Tensor u, Tensor dy) { return 2.1 * u * dy; })(v"), std::string::npos)
      << source;
}

}  // namespace
}  // namespace reel::fuzz
