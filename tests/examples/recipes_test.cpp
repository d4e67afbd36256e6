// The programs of docs/recipes.md, with a tenth of their steps: each one learns.
#include "reel/tests/examples/program_test.h"

namespace {

struct Recipe {
  std::string name;
  int steps;
  std::string figure;  // the words in front of the figure that training prints
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

TEST_P(RecipesTest, TrainingImprovesTheFigure) {
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

class ImportWeightsTest : public ProgramTest {
 protected:
  ImportWeightsTest() : ProgramTest("import_weights", REEL_RECIPES "/import_weights") {}
};

TEST_F(ImportWeightsTest, TrainsImportedWeightsAndExportsThemUnchanged) {
  const Outcome outcome = run({});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const std::vector<double> imported = figures_of(outcome.out, "imported: loss ");
  const std::vector<double> trained = figures_of(outcome.out, "trained: loss ");
  const std::vector<double> again = figures_of(outcome.out, "imported again: ");
  ASSERT_EQ(imported.size() + trained.size() + again.size(), 3u) << outcome.out;
  EXPECT_LT(trained[0], 0.1 * imported[0]);
  EXPECT_EQ(trained[0], again[0]);
  // Layouts of PyTorch: the outputs of a matrix are its rows.
  const std::string file = content_of(folder_ / "trained.safetensors");
  const std::string header = file.substr(0, file.find("]}}"));
  EXPECT_NE(header.find(R"("shape":[64,8])"), std::string::npos) << header;
  EXPECT_NE(header.find(R"("lstm.bias_hh_l0")"), std::string::npos) << header;

  const Outcome from_file = run({"trained.safetensors"});
  const std::vector<double> further = figures_of(from_file.out, "imported: loss ");
  ASSERT_EQ(further.size(), 1u) << from_file.out << from_file.error;
  EXPECT_LT(further[0], 0.1 * imported[0]);
}

}  // namespace
