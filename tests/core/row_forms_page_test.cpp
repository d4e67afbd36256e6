// The table of docs/semantics.md with the ops that have no form for all rows of vmap.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "reel/core/op/op.h"
#include "reel/core/ops/shape/iteration_batching.h"

namespace reel {
namespace {

std::set<std::string> ops_in_table() {
  std::ifstream page(REEL_SEMANTICS_PAGE);
  std::set<std::string> result;
  bool is_in_section = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("### ")) is_in_section = line == "### Ops without a form for all rows";
    if (!is_in_section || !line.starts_with("| `")) continue;
    const std::string first = line.substr(1, line.find('|', 1) - 1);
    static const std::regex kName("`([a-z_]+)`");
    for (std::sregex_iterator at(first.begin(), first.end(), kName), end; at != end; ++at)
      EXPECT_TRUE(result.insert((*at)[1]).second) << (*at)[1] << " is there twice";
  }
  return result;
}

TEST(EveryOpIsInTheTable, TableListsOpsWithoutABatchingRule) {
  std::set<std::string> without;
  for (const Op* op : all_ops())
    if (!iteration_batching_rule(*op)) without.insert(std::string(op->name));
  const std::set<std::string> listed = ops_in_table();
  for (const std::string& name : without)
    EXPECT_TRUE(listed.count(name)) << name << " has no iteration_batching: give it one, or a row";
  for (const std::string& name : listed)
    EXPECT_TRUE(without.count(name)) << name << " has a row, but no op of this name lacks a form";
}

}  // namespace
}  // namespace reel
