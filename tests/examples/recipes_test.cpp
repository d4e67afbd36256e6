// The programs of docs/recipes.md, with a tenth of their steps: each one learns.
#include "reel/tests/examples/program_test.h"

namespace {

struct Recipe {
  std::string name;
  int steps;
  std::string figure;  // the words in front of what is printed along the training
  double at_most;      // the last figure relative to the first one
};

void PrintTo(const Recipe& recipe, std::ostream* out) { *out << recipe.name; }

class RecipesTest : public ProgramTest, public ::testing::WithParamInterface<Recipe> {
 protected:
  RecipesTest() : ProgramTest(GetParam().name, REEL_RECIPES "/" + GetParam().name) {}
};

std::vector<double> figures_of(const std::string& text, const std::string& words) {
  std::vector<double> result;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    result.push_back(std::stod(text.substr(at + words.size())));
  return result;
}

TEST_P(RecipesTest, Learns) {
  const Outcome outcome = run({std::to_string(GetParam().steps)});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  const std::vector<double> figures = figures_of(outcome.out, GetParam().figure);
  ASSERT_EQ(figures.size(), 4u) << outcome.out;
  if (GetParam().at_most < 1)
    EXPECT_LT(figures.back(), GetParam().at_most * figures.front()) << outcome.out;
  else
    EXPECT_GT(figures.back(), GetParam().at_most * figures.front()) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(EachProgram, RecipesTest,
                         ::testing::Values(Recipe{"forecaster", 60, ": error ", 0.5},
                                           Recipe{"crf_tagger", 60, ": loss ", 0.8},
                                           Recipe{"adaptive_ode", 60, ": error ", 0.5},
                                           Recipe{"ctc", 60, ": loss ", 0.3},
                                           Recipe{"seq2seq", 90, ": loss ", 0.8},
                                           Recipe{"transformer", 60, ": loss ", 0.5},
                                           Recipe{"policy_gradient", 30, "stands ", 1.5}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
