// Without debug information an error names no line, and its text is the message.
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

TEST(ErrorWithoutPlaceTest, ItsTextIsTheMessage) {
  try {
    ones({2}) + ones({3});
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_EQ(error.where(), "");
    EXPECT_EQ(error.what(), error.message());
  }
}

TEST(ErrorWithoutPlaceTest, ProfilesSayHowToGetLines) {
  const auto f = jit([](const Tensor& x) { return sin(x); }, {.profile = true});
  f(ones({2}));
  EXPECT_TRUE(f.profile().summary().ends_with(
      "compile your program with -g1 or more to see lines of code; it costs no speed\n"));
}

}  // namespace
}  // namespace reel
