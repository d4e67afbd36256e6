// Each public function on tensors is saved by a case, or has a reason why not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "reel/tests/public_functions.h"

namespace reel {
namespace {

/// Functions that no case of tests/onnx/saved names, with the reason.
const std::map<std::string, std::string>& not_in_cases() {
  static const auto& reasons = *new std::map<std::string, std::string>{
      {"div", "as an operator"},
      {"greater", "as an operator"},
      {"greater_equal", "as an operator"},
      {"less_equal", "as an operator"},
      {"logical_not", "as an operator"},
      {"logical_or", "as an operator"},
      {"mul", "as an operator"},
      {"neg", "as an operator"},
      {"not_equal", "as an operator"},
      {"sub", "as an operator"},
      {"dim_minus", "as an operator"},
      {"dim_over", "as an operator"},
      {"dim_plus", "as an operator"},
      {"dim_times", "as an operator"},
      {"categorical", "draws; in the example policy_gradient"},
      {"glorot_normal", "draws initial values"},
      {"glorot_uniform", "draws initial values"},
      {"he_normal", "draws initial values"},
      {"he_uniform", "draws initial values"},
      {"lecun_normal", "draws initial values"},
      {"lecun_uniform", "draws initial values"},
      {"orthogonal", "draws initial values"},
      {"identity_matrix", "initial values of layers"},
      {"permutation", "draws; the argsort of random_uniform"},
      {"spec_augment", "draws; masks of positions that random_uniform gives"},
      {"item", "reads an element in eager mode"},
      {"random_state", "only in eager mode"},
      {"set_random_state", "only in eager mode"},
      {"saved_values", "returns a report"},
      {"word_error_rate", "texts, no tensors"},
      {"whole_gradient", "serves templates"},
      {"zero_gradient", "serves templates"}};
  return reasons;
}

/// Returns the words in the sources of the cases.
std::set<std::string> words_of_cases() {
  static const std::regex word(R"([A-Za-z_]\w*)");
  std::set<std::string> words;
  for (const auto& entry :
       std::filesystem::directory_iterator(REEL_SOURCE_FOLDER "/tests/onnx/saved")) {
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i)
      words.insert(i->str());
  }
  return words;
}

TEST(SavedFrontendTest, EveryFunctionHasACaseOrAReason) {
  const std::set<std::string> words = words_of_cases();
  const std::set<std::string> names = public_functions(REEL_SOURCE_FOLDER);
  EXPECT_GT(names.size(), 200U);
  for (const std::string& name : names)
    EXPECT_NE(words.count(name) > 0, not_in_cases().count(name) > 0)
        << name << " has no case in tests/onnx/saved and no reason, or both";
  for (const auto& [name, reason] : not_in_cases())
    EXPECT_TRUE(names.count(name)) << name << " is no public function";
}

}  // namespace
}  // namespace reel
