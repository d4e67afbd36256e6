// README.md repeats figures from the tables of docs/performance.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> lines_of(const std::string& page) {
  std::ifstream in(REEL_SOURCE "/" + page);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Returns the cells of a row of a table.
std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream in(row.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
  return cells;
}

/// Returns the numbers in a text.
std::vector<double> numbers_in(const std::string& text) {
  static const std::regex number(R"(\d+(\.\d+)?)");
  std::vector<double> result;
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
    result.push_back(std::stod(at->str()));
  return result;
}

double first_number(const std::string& text) { return numbers_in(text).at(0); }

TEST(ReadmeNumbersTest, TimesOfTheLstmAreThoseOfThePage) {
  const std::regex row(R"(\| (\d+, \d+, \d+, \d+) \| .* ms \| .*)");
  int rows = 0;
  std::smatch found;
  for (const std::string& line : lines_of("README.md")) {
    if (!std::regex_match(line, found, row)) continue;
    std::vector<std::vector<std::string>> on_page;  // of the tables, from the first one on
    for (const std::string& other : lines_of("docs/performance.md"))
      if (other.starts_with("| " + found[1].str() + " |")) on_page.push_back(cells_of(other));
    ASSERT_GE(on_page.size(), 2u) << line;
    const std::vector<std::string> cells = cells_of(line);
    EXPECT_EQ(first_number(cells[1]), first_number(on_page[1][1])) << line;
    EXPECT_NEAR(first_number(cells[2]), first_number(on_page[0][1]), 0.0051) << line;
    EXPECT_NEAR(first_number(cells[3]), first_number(on_page[0][5]), 0.0051) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

TEST(ReadmeNumbersTest, RangesOfBatchesOfOtherLengthsAreThoseOfThePage) {
  std::vector<double> repeated, eager;
  bool is_table = false;
  for (const std::string& line : lines_of("docs/performance.md")) {
    if (line.starts_with("| model, order of the batches")) {
      is_table = true;
    } else if (is_table && !line.starts_with("|")) {
      break;
    } else if (is_table && !line.starts_with("| ---")) {
      const std::vector<std::string> cells = cells_of(line);
      for (const double ratio : numbers_in(cells[2])) repeated.push_back(ratio);
      eager.push_back(first_number(cells[5]));
    }
  }
  ASSERT_EQ(eager.size(), 8u);
  std::string readme;
  for (const std::string& line : lines_of("README.md")) readme += line + ' ';
  const auto range = [](const std::vector<double>& numbers) {
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    std::ostringstream text;
    text << *low << " to " << *high;
    return text.str();
  };
  EXPECT_NE(readme.find(range(eager) + " of the time of eager mode"), std::string::npos)
      << range(eager);
  EXPECT_NE(readme.find(range(repeated) + " times as long"), std::string::npos) << range(repeated);
}

}  // namespace
