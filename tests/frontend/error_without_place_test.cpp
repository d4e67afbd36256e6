// A program without debug information is told once how to get lines into its errors.
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

std::string text_of_error() {
  try {
    ones({2}) + ones({3});
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "");
    return error.what();
  }
  return "(nothing was thrown)";
}

bool tells_of_g1(const std::string& text) { return text.find("-g1") != std::string::npos; }

TEST(ErrorsWithoutLinesTest, TheFirstOneSaysHowToGetThem) {
  try {
    load_npy("no/such/file.npy");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_FALSE(tells_of_g1(error.what())) << "a file's error is not about a line";
  }
  EXPECT_TRUE(tells_of_g1(text_of_error()));
  EXPECT_FALSE(tells_of_g1(text_of_error()));
}

}  // namespace
}  // namespace reel
