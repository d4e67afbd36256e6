// The number of ONNX's cases in README.md is the number of the page about them.
#include <fstream>
#include <sstream>

#include "reel/core/base/str.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

std::string contents_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(OnnxPagesTest, ReadmeHasTheNumberOfThePage) {
  // "| **all** | cases | eager | ..."
  std::string page = contents_of(REEL_ONNX_PAGE);
  const std::string row = "| **all** | ";
  const std::size_t at = page.find(row);
  ASSERT_NE(at, std::string::npos);
  std::istringstream numbers(page.substr(at + row.size()));
  int cases = 0, eager = 0;
  char bar = 0;
  numbers >> cases >> bar >> eager;
  const std::string expected =
      str(eager, " of the ", cases, " cases of ops in the test data of ONNX 1.22");
  EXPECT_NE(contents_of(REEL_README).find(expected), std::string::npos) << expected;
}

}  // namespace
}  // namespace reel
