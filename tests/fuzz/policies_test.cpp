// Tests of the fuzzer: it finds injected defects of policies, checkpoint(f), truncate and
// derivatives in programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "reel/core/ops.h"
#include "reel/tests/fuzz/checks.h"
#include "reel/tests/fuzz/machine.h"
#include "reel/tests/fuzz/program/programs_with.h"
#include "reel/tests/fuzz/shrinking/variants.h"

namespace reel::fuzz {
namespace {

/// An existing rule with a defect in the instructions for which `is_wrong` is true.
class Defective : public Rule {
 public:
  using Says = bool (*)(const Instruction&);
  using Spoils = Tensor (*)(const Tensor&);
  Defective(const std::string& name, Says is_wrong, Spoils spoils)
      : Rule("defective " + name, 40), of_(named(name)), is_wrong_(is_wrong), spoils_(spoils) {}

  bool draft(Drafter& drafter, Instruction& in) const override { return of_->draft(drafter, in); }
  void print(const Instruction& in, Printer& printer) const override { of_->print(in, printer); }
  void run(const Instruction& in, Machine& machine) const override {
    of_->run(in, machine);
    if (!is_wrong_(in)) return;
    for (const int output : in.outputs)
      if (Slot& slot = machine[output]; slot.tensor.is_defined() && is_float(slot.tensor.dtype()))
        slot.tensor = spoils_(slot.tensor);
  }

 protected:
  static const Rule* named(const std::string& name) {
    for (const Rule* rule : all_rules())
      if (rule->name() == name) return rule;
    throw std::logic_error("there is no rule " + name);
  }
  const Rule* const of_;

 private:
  const Says is_wrong_;
  const Spoils spoils_;
};

/// Return x with a first, second or third derivative that is a little too large.
Tensor with_first(const Tensor& x) { return x + 0.01 * (x - stop_gradient(x)); }
Tensor with_second(const Tensor& x) { return x + 0.01 * square(x - stop_gradient(x)); }

Tensor with_third(const Tensor& x) {
  const Tensor change = x - stop_gradient(x);
  return x + 0.01 * change * change * change;
}

/// Returns the first name of a rule that contains `part`.
std::string name_with(const std::string& part) {
  for (const Rule* rule : all_rules())
    if (rule->name().find(part) != std::string::npos) return rule->name();
  throw std::logic_error("there is no rule with " + part);
}

bool has_policy(const Instruction& in) { return in.policy != PolicyForm{}; }
bool keeps_checkpoints(const Instruction& in) { return in.policy.keeps_checkpoints(); }

/// Returns checks for findings of this kind only.
Checks of_kind(const std::string& kind) {
  return [kind](const Program& program, Statistics* statistics) {
    return check(program, statistics, kind);
  };
}

std::optional<Program> find_kind(const Rule& rule, const std::string& kind) {
  return find(&rule, kind, of_kind(kind));
}

TEST(FuzzPoliciesTest, FindsAPolicyThatChangesAGradient) {
  const Defective rule("scan", keeps_checkpoints, with_first);
  const auto found = find_kind(rule, "checkpoints of loops differs");
  ASSERT_TRUE(found);
  expect_small(*found, &rule, 6, 3);
  // The printed program has the policy that shows the defect, and no other.
  const std::string source = to_source(*found);
  EXPECT_NE(source.find("kept(Checkpoint::"), source.npos) << source;
  EXPECT_EQ(source.find(".where("), source.npos) << source;
  EXPECT_EQ(source.find(".swap_memory"), source.npos) << source;
}

TEST(FuzzPoliciesTest, FindsAPolicyThatChangesASecondGradient) {
  const Defective rule("scan", has_policy, with_second);
  const auto found = find_kind(rule, "second gradients, checkpoints of loops differs");
  ASSERT_TRUE(found);
  expect_small(*found, &rule, 6, 3);
}

TEST(FuzzPoliciesTest, FindsAPolicyThatChangesATangentOrAThirdDerivative) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> kinds[] = {
      {"tangents, checkpoints of loops differs", with_first},
      {"tangents of gradients, checkpoints of loops differs", with_second},
      {"third derivatives, checkpoints of loops differs", with_third}};
  for (const auto& [kind, spoils] : kinds) {
    const Defective rule("while_loop", has_policy, spoils);
    const auto found = find_kind(rule, kind);
    ASSERT_TRUE(found) << kind;
    expect_small(*found, &rule, 6, 3);
  }
}

TEST(FuzzPoliciesTest, FindsAPolicyThatChangesAGradientOfAStateThatGrows) {
  for (const char* part : {"cum_concat(a * 0.5", "s.first.push_back(", "IndexedSlices{concat",
                           "SparseTensor{concat", "PartialShape{unknown}}, .checkpoint"}) {
    const Defective rule(name_with(part), has_policy, with_first);
    const auto found = find_kind(rule, "checkpoints of loops differs");
    ASSERT_TRUE(found) << part;
    expect_small(*found, &rule);
  }
}

/// Adds 1 in a trace.
Tensor with_one_in_traces(const Tensor& x) { return x.is_traced() ? x + 1.0 : x; }

TEST(FuzzPoliciesTest, FindsDerivativesInsideThatDifferBetweenModes) {
  const Defective rule(
      "derivative", [](const Instruction&) { return true; }, with_one_in_traces);
  const auto found = find_kind(rule, "traced values differs");
  ASSERT_TRUE(found);
  expect_small(*found, &rule);
  EXPECT_NE(to_source(*found).find("const auto f"), std::string::npos);
}

TEST(FuzzPoliciesTest, FindsACheckpointedFunctionWithAnotherGradient) {
  const Defective first("checkpoint", has_policy, with_first);
  const auto found = find_kind(first, "checkpoints of functions differs");
  ASSERT_TRUE(found);
  expect_small(*found, &first);
  EXPECT_NE(to_source(*found).find(" = checkpointed("), std::string::npos);
  const Defective second("checkpoint", has_policy, with_second);
  const auto other = find_kind(second, "second gradients, checkpoints of functions differs");
  ASSERT_TRUE(other);
  expect_small(*other, &second);
}

/// A scan that runs with a wrong truncate.
class CutsElsewhere : public Defective {
 public:
  explicit CutsElsewhere(int (*truncate)(int))
      : Defective("scan", has_policy, with_first), truncate_(truncate) {}
  void run(const Instruction& in, Machine& machine) const override {
    Instruction other = in;
    if (!in.loop.is_cut_by_hand) other.loop.truncate = truncate_(in.loop.truncate);
    of_->run(other, machine);
  }

 private:
  int (*const truncate_)(int);
};

TEST(FuzzPoliciesTest, FindsATruncateThatCutsElsewhereOrNowhere) {
  for (const auto truncate :
       {+[](int steps) { return steps ? steps + 1 : 0; }, +[](int) { return 0; }}) {
    const CutsElsewhere rule(truncate);
    const auto found = find_kind(rule, "truncate by hand differs");
    ASSERT_TRUE(found);
    expect_small(*found, &rule, 6, 3);
    EXPECT_NE(to_source(*found).find(".truncate = "), std::string::npos);
  }
}

TEST(FuzzPoliciesTest, FindsATruncateOfAllStepsThatCuts) {
  const CutsElsewhere rule([](int steps) { return steps == kAllSteps ? 1 : steps; });
  const auto found = find_kind(rule, "truncate of all steps differs");
  ASSERT_TRUE(found);
  expect_small(*found, &rule, 6, 3);
}

TEST(FuzzPoliciesTest, ProgramsAreOfManyKinds) {
  using Says = std::function<bool(const Instruction&)>;
  const auto has_inside = [](const Instruction& in, const Says& says) {
    bool result = false;
    for (const Block& block : in.blocks)
      for_each_block(block, [&](const Block& inner) {
        for (const Instruction& other : inner.body) result = result || says(other);
      });
    return result;
  };
  const std::pair<const char*, Says> kinds[] = {
      {"every so many steps", [](const Instruction& in) { return in.policy.steps > 0; }},
      {"a budget", [](const Instruction& in) { return in.policy.bytes > 0; }},
      {"a rule", [](const Instruction& in) { return in.policy.letters >= 0; }},
      {"a file", [](const Instruction& in) { return in.policy.swaps; }},
      {"other policies in loops that have one",
       [&](const Instruction& in) {
         return has_policy(in) && in.loop.states && has_inside(in, [&](const Instruction& inner) {
                  return inner.loop.states && has_policy(inner) && inner.policy != in.policy;
                });
       }},
      {"checkpoint(f) in a loop",
       [&](const Instruction& in) {
         return in.loop.states && has_inside(in, [](const Instruction& inner) {
                  return inner.policy.is_checkpointed;
                });
       }},
      {"a loop in checkpoint(f)",
       [&](const Instruction& in) {
         return in.policy.is_checkpointed &&
                has_inside(in, [](const Instruction& inner) { return inner.loop.states > 0; });
       }},
      {"a gradient in a loop",
       [&](const Instruction& in) {
         return in.loop.states && has_inside(in, [](const Instruction& inner) {
                  return inner.control == Control::derivative && inner.numbers[0] < 3;
                });
       }},
      {"a pullback that is called in a loop, in a loop",
       [&](const Instruction& in) {
         return in.loop.states && has_inside(in, [](const Instruction& inner) {
                  return inner.control == Control::derivative && inner.numbers[0] == 4;
                });
       }},
      {"a loop that is differentiated in a loop",
       [&](const Instruction& in) {
         return in.control == Control::derivative &&
                has_inside(in, [](const Instruction& inner) { return inner.loop.states > 0; });
       }},
      {"a state that grows, under a policy",
       [](const Instruction& in) { return in.control == Control::none && has_policy(in); }},
      {"truncate", [](const Instruction& in) { return in.loop.truncate > 0; }},
      {"truncate under a policy",
       [](const Instruction& in) { return in.loop.truncate > 0 && has_policy(in); }},
      {"truncate backwards",
       [](const Instruction& in) { return in.loop.truncate > 0 && in.loop.reverse; }},
      {"truncate until a condition",
       [](const Instruction& in) { return in.loop.truncate > 0 && in.loop.has_cond; }},
  };
  std::map<std::string, int> counts;
  int with_arrays = 0;
  for (std::uint64_t seed = 0; seed < 1800; ++seed) {
    const Program program = generate(seed, all_rules());
    for (const auto& [name, says] : kinds) counts[name] += has_instruction(program, says);
    with_arrays += has_instruction(program, [&](const Instruction& in) {
      const auto is_array = [&](int v) { return program.values[v].is_array; };
      return in.loop.truncate > 0 && std::any_of(in.inputs.begin(), in.inputs.end(), is_array);
    });
  }
  for (const auto& [name, says] : kinds) EXPECT_GE(counts[name], 10) << name;
  EXPECT_GE(with_arrays, 5);
}

}  // namespace
}  // namespace reel::fuzz
