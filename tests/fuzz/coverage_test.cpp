// Tests that each public function on tensors is drawn: a header that declares a new one needs a
// rule.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>

#include "reel/tests/fuzz/rules/rule.h"
#include "reel/tests/public_functions.h"

namespace reel::fuzz {
namespace {

/// Functions that no expression names, with the reason.
const std::map<std::string, std::string>& not_in_expressions() {
  static const auto& reasons = *new std::map<std::string, std::string>{
      {"add", "as an operator"},
      {"sub", "as an operator"},
      {"mul", "as an operator"},
      {"div", "as an operator"},
      {"neg", "as an operator"},
      {"remainder", "as an operator"},
      {"equal", "as an operator"},
      {"not_equal", "as an operator"},
      {"greater", "as an operator"},
      {"greater_equal", "as an operator"},
      {"less_equal", "as an operator"},
      {"logical_and", "as an operator"},
      {"logical_or", "as an operator"},
      {"logical_not", "as an operator"},
      {"dim_plus", "as an operator"},
      {"dim_minus", "as an operator"},
      {"dim_times", "as an operator"},
      {"dim_over", "as an operator"},
      {"grad", "rules/control/derivatives.cpp"},
      {"vjp", "rules/control/derivatives.cpp"},
      {"jvp", "rules/control/derivatives.cpp"},
      {"hvp", "rules/control/derivatives.cpp"},
      {"ctc_log_likelihood", "a part of ctc_loss"},
      {"attention_bias",
       "an option of attention; tests/frontend/layers/attention_options_test.cpp"},
      {"rotary", "a part of MultiHeadAttention"},
      {"linear_attention", "a scan; tests/frontend/layers/linear_attention_test.cpp"},
      {"linear_attention_step", "a step of linear_attention"},
      {"alibi_slopes", "a part of MultiHeadAttention"},
      {"sinusoidal_positions", "a part of MultiHeadAttention"},
      {"transducer_log_likelihood", "a part of transducer_loss"},
      {"ctc_beam_search", "searches; tests/frontend/losses/ctc_beam_search_test.cpp"},
      {"ctc_alignment", "maxima in two scans; tests/frontend/losses/ctc_alignment_test.cpp"},
      {"edit_distance", "integers; tests/frontend/losses/edit_distance_test.cpp"},
      {"label_error_rate", "sums of edit_distance"},
      {"word_error_rate", "texts, no tensors"},
      {"arctan", "one element each; tests/core/every_op_test.cpp"},
      {"logcumsumexp", "a running sum; tests/core/ops/cumulative_test.cpp"},
      {"spread", "expands; tests/core/ops/positions_test.cpp"},
      {"search_sorted", "gathers in rounds; tests/core/ops/positions_test.cpp"},
      {"repeat", "a search and a gather; tests/core/ops/positions_test.cpp"},
      {"stft_frames", "a part of stft"},
      {"hann_window", "a part of stft"},
      {"hamming_window", "numbers of a formula"},
      {"blackman_window", "numbers of a formula"},
      {"mel_filters", "numbers of a formula"},
      {"log_mel", "stft, a product and log; tests/frontend/signals/mel_test.cpp"},
      {"mfcc", "a product; tests/frontend/signals/mel_test.cpp"},
      {"resample", "a convolution; tests/frontend/signals/mel_test.cpp"},
      {"spec_augment", "random masks; tests/frontend/signals/spec_augment_test.cpp"},
      {"scatter_argmax", "scatter_max twice; tests/core/ops/scatter_by_test.cpp"},
      {"glorot_uniform", "a part of layers"},
      {"glorot_normal", "draws initial values of layers"},
      {"he_normal", "draws initial values of layers"},
      {"he_uniform", "draws initial values of layers"},
      {"lecun_normal", "draws initial values of layers"},
      {"lecun_uniform", "draws initial values of layers"},
      {"orthogonal", "draws initial values of layers"},
      {"identity_matrix", "initial values of layers"},
      {"with_dense_tables", "tables are drawn by check_rows() of checks.cpp"},
      {"manual_seed", "only in eager mode; the checks call it"},
      {"random_state", "only in eager mode; the checks compare it"},
      {"set_random_state", "only in eager mode"},
      {"print", "writes to the output"},
      {"set_training", "changes a flag of layers, and runs no op"},
      {"saved_values", "returns a report"},
      {"whole_gradient", "serves templates"},
      {"zero_gradient", "serves templates"}};
  return reasons;
}

/// Returns the words in the expressions of all rules.
std::set<std::string> words_of_rules() {
  static const std::regex word(R"([A-Za-z_]\w*)");
  std::set<std::string> words;
  for (const Rule* const rule : all_rules()) {
    const std::string& text = rule->name();
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i)
      words.insert(i->str());
  }
  return words;
}

TEST(FuzzCoverageTest, ExpressionsDeclareNoNamesOfOperands) {
  // Printing replaces these names, also where an expression declares them.
  static const std::regex declaration(
      R"(\b[A-Z]\w*[&*]? (a|b|c|list|axes|axis|dims|to|n|m|x|real|keep|swap)( =|\())"
      R"(|\b(auto|int)[&*]? (a|b|c|list|axes|axis|dims|to|n|m|x|real|keep|swap) =)");
  for (const Rule* const rule : all_rules())
    EXPECT_FALSE(std::regex_search(rule->name(), declaration)) << rule->name();
}

TEST(FuzzCoverageTest, EveryPublicFunctionIsDrawn) {
  const std::set<std::string> words = words_of_rules(),
                              names = public_functions(REEL_SOURCE_FOLDER);
  EXPECT_GT(names.size(), 150u);
  for (const std::string& name : names)
    EXPECT_TRUE(words.contains(name) || not_in_expressions().contains(name))
        << name << ": add a rule, or the reason against it";
  for (const auto& [name, reason] : not_in_expressions()) {
    EXPECT_TRUE(names.contains(name)) << name << " is no public function";
    EXPECT_FALSE(words.contains(name)) << name << " is drawn by an expression";
  }
}

}  // namespace
}  // namespace reel::fuzz
