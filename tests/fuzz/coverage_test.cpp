// Tests that each public function on tensors is drawn: a header that declares a new one needs a
// rule.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {
namespace {

/// Folders and files whose functions take or return tensors.
constexpr const char* kHeaders[] = {"core/functions",      "frontend/layers",
                                    "frontend/loops",      "frontend/losses",
                                    "frontend/optimisers", "frontend/sparse",
                                    "frontend/transforms", "frontend/tree/state_select.h"};
/// Headers there that are no part of the interface (docs/site/subjects.toml).
constexpr const char* kInternal[] = {
    "unranked.h",         "branch_cost.h",         "loop_leaves.h",
    "loop_recording.h",   "loop_policy.h",         "scan_index.h",
    "scan_leaves.h",      "scan_slices.h",         "row_batch.h",
    "optimiser_leaves.h", "stack_pushed_arrays.h", "trace_subcomputation.h",
    "attention_stream.h", "ctc_lattice.h",         "alignment_scans.h",
    "varying_ys.h",       "whole_function.h",      "rotate.h"};

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
      {"glu", "a split and sigmoids; tests/frontend/layers/norms_test.cpp"},
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
      {"spread", "expands; tests/core/ops/positions_test.cpp"},
      {"search_sorted", "gathers in rounds; tests/core/ops/positions_test.cpp"},
      {"repeat", "a search and a gather; tests/core/ops/positions_test.cpp"},
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

/// Returns the functions that a header declares outside of namespace detail.
std::set<std::string> functions_of(const std::filesystem::path& header) {
  static const std::regex declaration(
      R"((?:\[\[nodiscard\]\] )?[A-Za-z_][\w:<>,&* ]*[ &*]([a-z][a-z_0-9]*)\(.*)");
  std::ifstream file(header);
  std::set<std::string> names;
  bool is_detail = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("namespace detail") || line.starts_with("inline namespace detail"))
      is_detail = true;
    if (line.starts_with("}  // namespace detail")) is_detail = false;
    std::smatch match;
    if (!is_detail && std::regex_match(line, match, declaration) && match[1] != "requires")
      names.insert(match[1]);
  }
  return names;
}

bool is_internal(const std::filesystem::path& header) {
  for (const char* name : kInternal)
    if (header.filename() == name) return true;
  return header.extension() != ".h";
}

std::set<std::string> public_functions() {
  std::set<std::string> names;
  for (const char* const place : kHeaders) {
    const std::filesystem::path path = std::filesystem::path(REEL_SOURCE_FOLDER) / place;
    if (std::filesystem::is_directory(path)) {
      for (const auto& entry : std::filesystem::directory_iterator(path))
        if (!is_internal(entry.path())) names.merge(functions_of(entry.path()));
    } else {
      names.merge(functions_of(path));
    }
  }
  return names;
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

TEST(FuzzCoverageTest, EveryPublicFunctionIsDrawn) {
  const std::set<std::string> words = words_of_rules(), names = public_functions();
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
