// FixedValue: equal if and only if the bits are equal, and printed as in messages.
#include "reel/core/types/fixed_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reel {
namespace {

TEST(FixedValueTest, EqualBitsAreEqual) {
  EXPECT_EQ(FixedValue(std::nan("")), FixedValue(std::nan("")));
  EXPECT_NE(FixedValue(0.), FixedValue(-0.));
  EXPECT_NE(FixedValue(0.1), FixedValue(std::nextafter(0.1, 1.)));
  EXPECT_NE(FixedValue(0.1L), FixedValue(std::nextafter(0.1L, 1.L)));
  EXPECT_EQ(FixedValue(0.1L), FixedValue(0.1L));
  EXPECT_NE(FixedValue((std::int64_t{1} << 53) + 1), FixedValue(std::int64_t{1} << 53));
  EXPECT_NE(FixedValue(-1), FixedValue(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_NE(FixedValue(std::string("a")), FixedValue(std::string("a\0", 2)));
}

TEST(FixedValueTest, ValuesOfDifferentKindsDiffer) {
  EXPECT_NE(FixedValue(true), FixedValue(1));
  EXPECT_NE(FixedValue('a'), FixedValue(97));
  EXPECT_NE(FixedValue(std::string("a")), FixedValue('a'));
  EXPECT_NE(FixedValue(1.), FixedValue(1));
  EXPECT_NE(FixedValue(std::string("of size 2")), FixedValue::of_size(2));
  EXPECT_NE(FixedValue(std::string("key a")), FixedValue::of_key("a"));
  EXPECT_NE(FixedValue(std::string()), FixedValue());
  EXPECT_FALSE(FixedValue(std::string("of size 2")).is_of_container());
  EXPECT_TRUE(FixedValue::of_size(2).is_of_container());
}

TEST(FixedValueTest, PrintsItsValue) {
  enum class Color { green = 7 };
  EXPECT_EQ(FixedValue(-3).text(), "-3");
  EXPECT_EQ(FixedValue(true).text(), "1");
  EXPECT_EQ(FixedValue('a').text(), "a");
  EXPECT_EQ(FixedValue(static_cast<signed char>(65)).text(), "65");
  EXPECT_EQ(FixedValue(Color::green).text(), "7");
  EXPECT_EQ(FixedValue(0.1).text(), "0.1");
  EXPECT_EQ(FixedValue(0.5L).text(), "0.5");
  EXPECT_EQ(FixedValue(std::numeric_limits<std::uint64_t>::max()).text(), "18446744073709551615");
  EXPECT_EQ(FixedValue(std::string("some text")).text(), "some text");
  EXPECT_EQ(FixedValue::of_size(2).text(), "of size 2");
  EXPECT_EQ(FixedValue::of_key("w").text(), "key w");
  EXPECT_EQ(FixedValue().text(), "");
}

}  // namespace
}  // namespace reel
