// Each public function on tensors is saved by a case, or has a reason why not.
#include <gtest/gtest.h>

#include <cctype>
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

/// Functions that no case of tests/onnx/saved calls, with the reason.
const std::map<std::string, std::string>& not_in_cases() {
  static const auto& reasons = *new std::map<std::string, std::string>{
      {"div", "as an operator"},
      {"equal", "as an operator"},
      {"greater", "as an operator"},
      {"greater_equal", "as an operator"},
      {"less", "as an operator"},
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
      {"bernoulli", "draws; random_uniform below a number"},
      {"categorical", "draws; in the example policy_gradient"},
      {"dropout", "draws; random_uniform below a number"},
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
      {"truncated_normal", "draws; refused as a node (SaveOnnxTest)"},
      {"print", "prints; SaveOnnxTest.PrintsAreLeftOut"},
      {"item", "reads an element in eager mode"},
      {"random_state", "only in eager mode"},
      {"set_random_state", "only in eager mode"},
      {"saved_values", "returns a report"},
      {"word_error_rate", "texts, no tensors"},
      {"whole_gradient", "serves templates"},
      {"zero_gradient", "serves templates"}};
  return reasons;
}

/// Returns C++ code with blanks in place of comments, and of the contents of texts and characters.
std::string without_texts(const std::string& code) {
  std::string result;
  std::size_t i = 0;
  const auto skip_to = [&](const std::string& end) {
    const std::size_t found = code.find(end, i);
    i = found == std::string::npos ? code.size() : found + end.size();
    result += ' ';
  };
  const auto is_part_of_word = [&](std::size_t at) {
    return at < code.size() &&
           (std::isalnum(static_cast<unsigned char>(code[at])) || code[at] == '_');
  };
  while (i < code.size()) {
    if (code.compare(i, 2, "//") == 0) {
      skip_to("\n");
    } else if (code.compare(i, 2, "/*") == 0) {
      skip_to("*/");
    } else if (code.compare(i, 3, "R\"(") == 0) {
      skip_to(")\"");
    } else if (code[i] == '"' || (code[i] == '\'' && !(i > 0 && is_part_of_word(i - 1)))) {
      const char quote = code[i++];
      while (i < code.size() && code[i] != quote) i += code[i] == '\\' ? 2 : 1;
      ++i;
      result += ' ';
    } else {
      result += code[i++];
    }
  }
  return result;
}

/// Returns the names that code calls, as name( or name<. Methods do not count.
std::set<std::string> called_in(const std::string& code) {
  static const std::regex call(R"((^|[^\w.>])([A-Za-z_]\w*)(?=[(<]))");
  const std::string text = without_texts(code);
  std::set<std::string> names;
  for (std::sregex_iterator i(text.begin(), text.end(), call), end; i != end; ++i)
    names.insert((*i)[2]);
  return names;
}

/// Returns the names that the sources of the cases call.
std::set<std::string> called_in_cases() {
  std::set<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(REEL_SOURCE_FOLDER "/tests/onnx/saved")) {
    std::ifstream file(entry.path());
    names.merge(called_in(std::string(std::istreambuf_iterator<char>(file), {})));
  }
  return names;
}

TEST(SavedFrontendTest, CommentsTextsMethodsAndVariablesAreNoCalls) {
  EXPECT_EQ(
      called_in("f(g<T>(x), \"print(\\\"\", '\"', less, 1'000); // dropout(x)\n m.equal(y) < z;"),
      (std::set<std::string>{"f", "g"}));
}

TEST(SavedFrontendTest, EveryFunctionHasACaseOrAReason) {
  const std::set<std::string> called = called_in_cases();
  const std::set<std::string> names = public_functions(REEL_SOURCE_FOLDER);
  EXPECT_GT(names.size(), 200U);
  for (const std::string& name : names)
    EXPECT_NE(called.count(name) > 0, not_in_cases().count(name) > 0)
        << name << " has no case in tests/onnx/saved and no reason, or both";
  for (const auto& [name, reason] : not_in_cases())
    EXPECT_TRUE(names.count(name)) << name << " is no public function";
}

}  // namespace
}  // namespace reel
