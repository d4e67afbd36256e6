// The index of functions says which functions have no gradient: as the ops do
// (docs/site/subjects.toml).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "reel/core/ops/registry.h"

namespace reel {
namespace {

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns all matches of the first group.
std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.insert((*at)[1]);
  return found;
}

/// Returns the names in the lists of the file that begin with `key`.
std::set<std::string> listed(const std::string& subjects, const std::string& key) {
  std::set<std::string> names;
  for (const std::string& list : matches(subjects, key + R"( = \[([^\]]*)\])"))
    names.merge(matches(list, "\"([^\"]*)\""));
  return names;
}

TEST(IndexFactsTest, FunctionsWithoutAGradientAreThoseOfOpsWithoutOne) {
  const std::filesystem::path root = REEL_SOURCE;
  const std::string subjects = text_of_file(root / "docs/site/subjects.toml");
  std::set<std::string> without = listed(subjects, "without_gradient");
  without.merge(listed(subjects, "zero_gradient"));
  ASSERT_GT(without.size(), 30u);

  std::set<std::string> functions;
  for (const auto& file : std::filesystem::directory_iterator(root / "core/functions"))
    functions.merge(matches(text_of_file(file.path()), R"(\nTensor ([a-z_0-9]+)\()"));
  ASSERT_TRUE(functions.count("matmul"));
  // Constants and random numbers have a column of their own; the op `pack` is for packed matrices.
  for (const char* other :
       {"full", "range", "one_hot", "pack", "random_normal", "random_uniform", "truncated_normal"})
    functions.erase(other);

  for (const Op* op : all_ops()) {
    const std::string name(op->name);
    if (functions.count(name) == 0) continue;
    EXPECT_EQ(without.count(name) == 1, op->vjp == nullptr) << name;
  }
}

}  // namespace
}  // namespace reel
