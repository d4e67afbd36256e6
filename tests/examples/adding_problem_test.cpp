// The program adding_problem: it learns, and resumed training equals uninterrupted training.
#include "program_test.h"

namespace {

class AddingProblemTest : public ProgramTest, public ::testing::WithParamInterface<Arguments> {
 protected:
  AddingProblemTest() : ProgramTest("adding_problem", REEL_ADDING_PROBLEM) {}
  static Arguments with(Arguments arguments) {
    arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
    return arguments;
  }
  static Arguments small(const Arguments& more) {
    Arguments all = with({"--length", "10", "--batch", "3", "--hidden", "6"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Every, AddingProblemTest,
                         ::testing::Values(Arguments{"--mode", "eager"},
                                           Arguments{"--mode", "traced"},
                                           Arguments{"--mode", "eager", "--ragged"},
                                           Arguments{"--mode", "traced", "--ragged"}));

TEST_P(AddingProblemTest, GoesOnAsIfItHadNotStopped) {
  train("whole", small({"--steps", "20"}));
  train("parts", small({"--steps", "20", "--stop-after", "10"}));
  train("parts", {"--resume"});
  expect_same_training("whole", "parts");
}

TEST_P(AddingProblemTest, TrainingReachesASmallError) {
  const std::string out =
      train("a", with({"--length", "6", "--batch", "32", "--hidden", "16", "--steps", "600"}));
  const std::size_t at = out.find("ended at ");
  ASSERT_NE(at, std::string::npos) << out;
  // Always answering 1 has an error of 1 / 6.
  EXPECT_LT(std::stod(out.substr(at + 9)), 0.05) << out;
}

TEST_P(AddingProblemTest, LossesAreTheSameOnAnyNumberOfThreads) {
  expect_same_on_any_threads(with({"--length", "10"}));
}

TEST_P(AddingProblemTest, RefusesAnotherTraining) {
  train("a", small({"--steps", "2"}));
  expect_error(run(with_files("a", {"--resume", "--length", "11"})),
               "a/model holds another model: it was made with --length 10, not 11");
}

}  // namespace
