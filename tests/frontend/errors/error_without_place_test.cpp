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

}  // namespace
}  // namespace reel
