// Tests of relations: each finds an injected defect, and applies to many programs.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "reel/core/ops.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/programs_with.h"
#include "reel/tests/fuzz/program/typing.h"
#include "reel/tests/fuzz/relations/relation.h"

namespace reel::fuzz {
namespace {

const Typing kOfReals = unary(Element::real, Element::real);

/// Returns the dim of a batch, if the tensor has it.
std::optional<Dim> batch_of(const Tensor& x) {
  for (const Dim& dim : x.dims())
    if (dim.is_named() && dim.name() == "rows") return dim;
  return {};
}

/// Adds the number of each row in its batch.
Tensor with_number_of_row(const Tensor& x) {
  const auto rows = batch_of(x);
  return rows ? x + cast(range(*rows), x.dtype()) : x;
}

/// Subtracts the mean over the batch.
Tensor without_mean_of_rows(const Tensor& x) {
  const auto rows = batch_of(x);
  return rows ? x - mean(x, {*rows}) : x;
}

/// Adds 1 if any element is infinite, padding included.
Tensor with_infinity_counted(const Tensor& x) {
  if (is_tracing()) return x;
  for (const double value : cast(x, f64).to_vector<double>())
    if (std::isinf(value)) return x + 1.0;
  return x;
}

/// Adds 1 if the dim is not the first dim of its name.
Tensor with_other_dims_counted(const Tensor& x) {
  static std::map<std::string, Dim> first;
  for (const Dim& dim : x.dims())
    if (dim.is_named() && !(first.emplace(dim.name(), dim).first->second == dim)) {
      first.clear();
      return x + 1.0;
    }
  return x;
}

/// Adds the number of calls so far.
Tensor with_calls_counted(const Tensor& x) {
  static int calls = 0;
  return x + static_cast<double>(++calls);
}

/// A scan that loses its state where it is cut.
class ForgetfulScan : public Rule {
 public:
  ForgetfulScan() : Rule("forgetful scan", 60) {}
  bool draft(Drafter& d, Instruction& in) const override { return scan().draft(d, in); }
  void run(const Instruction& in, Machine& machine) const override {
    scan().run(in, machine);
    if (in.loop.parts_at < 0) return;
    for (const int output : in.outputs)
      if (machine.tensor(output).is_defined() && is_float(machine.tensor(output).dtype()))
        machine[output] = machine.tensor(output) + 1.0;
  }
  void print(const Instruction& in, Printer& p) const override { scan().print(in, p); }

 private:
  static const Rule& scan() {
    static const Rules rules = scan_rules();
    return *rules[0];
  }
};

/// Expects that the relation finds the defect in some of 300 programs that have the rule.
void expect_found(const char* name, const Rule* rule) {
  const Relation* const relation = relation_of(name);
  ASSERT_TRUE(relation) << name;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Program program = relation->draw(seed, with(rule));
    if (!uses(program, rule)) continue;
    const auto finding = check_relation(*relation, program);
    if (!finding) continue;
    EXPECT_NE(finding->kind.find("differs"), std::string::npos) << finding->message;
    EXPECT_EQ(relation_of(finding->kind), relation);
    return;
  }
  FAIL() << "no program of 300 shows the defect to " << name;
}

TEST(RelationsTest, PermutedRowsFindAnOpThatReadsTheNumberOfItsRow) {
  expect_found("permuted rows", expression(REEL_EXPRESSION(with_number_of_row(a)), 40, kOfReals));
}

TEST(RelationsTest, AnEntryAloneFindsAnOpThatCouplesRows) {
  expect_found("entry alone", expression(REEL_EXPRESSION(without_mean_of_rows(a)), 40, kOfReals));
}

TEST(RelationsTest, PaddingFindsAnOpThatReadsInfinity) {
  expect_found("padding", expression(REEL_EXPRESSION(with_infinity_counted(a)), 40, kOfReals));
}

TEST(RelationsTest, FormsFindAnOpThatIsWrongOnPlainAxes) {
  expect_found("forms",
               expression(REEL_EXPRESSION(a.rank() == 0 || a.type().is_named() ? a : a + 1.0), 40,
                          kOfReals));
}

TEST(RelationsTest, VmapAndMapFindAnOpThatIsWrongInARecordedRow) {
  expect_found("vmap and map",
               expression(REEL_EXPRESSION(a.is_traced() ? a + 1.0 : a), 40, kOfReals));
}

TEST(RelationsTest, CutLoopsFindALostState) {
  static const ForgetfulScan rule;
  expect_found("cut loops", &rule);
}

TEST(RelationsTest, DimsInsideFindAnOpThatKnowsADimByItsName) {
  expect_found("dims inside",
               expression(REEL_EXPRESSION(with_other_dims_counted(a)), 40, kOfReals));
}

TEST(RelationsTest, CapturesFindAnOpThatIsWrongOnArgumentsOfATrace) {
  expect_found("captures", expression(REEL_EXPRESSION(a.is_traced() ? a + 1.0 : a), 40, kOfReals));
}

TEST(RelationsTest, TheOrderOfSizesFindsAnOpThatDependsOnFormerCalls) {
  expect_found("order of sizes", expression(REEL_EXPRESSION(with_calls_counted(a)), 40, kOfReals));
}

TEST(RelationsTest, EachAppliesToManyProgramsAndHolds) {
  for (const Relation& relation : all_relations()) {
    Statistics statistics;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const auto finding = check_relation(relation, relation.draw(seed, all_rules()), &statistics);
      EXPECT_FALSE(finding) << "seed " << seed << ": " << finding->kind << ": " << finding->message;
    }
    EXPECT_GT(statistics.relations, 3) << relation.name;
  }
}

TEST(RelationsTest, SeedsOfFormerFindingsHold) {
  for (const std::uint64_t seed :
       {730013059, 730015982, 730017211, 740000351, 740010863, 740014350, 750019364, 770004437,
        770012428, 790001229, 800008537, 800011926}) {
    const auto finding = check_relations(seed, all_rules());
    EXPECT_FALSE(finding) << "seed " << seed << ": " << finding->kind << ": " << finding->message;
  }
}

TEST(RelationsTest, MostProgramsDrawThree) {
  Statistics statistics;
  for (std::uint64_t seed = 0; seed < 12; ++seed) check_relations(seed, all_rules(), &statistics);
  EXPECT_GT(statistics.relations, 30);
}

}  // namespace
}  // namespace reel::fuzz
