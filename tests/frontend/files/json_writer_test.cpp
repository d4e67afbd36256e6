#include "reel/frontend/files/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace reel {
namespace {

TEST(JsonWriterTest, ObjectsAndArraysHaveCommasBetweenTheirItems) {
  JsonWriter json;
  json.begin_object();
  json.member("name", "a");
  json.key("list");
  json.begin_array();
  json.value(1);
  json.array(true, -2, 0.5);
  json.begin_object();
  json.end_object();
  json.null();
  json.end_array();
  json.member("last", std::string("b"));
  json.end_object();
  EXPECT_EQ(json.take(), R"({"name":"a","list":[1,[true,-2,0.5],{},null],"last":"b"})");
  EXPECT_EQ(json.take(), "");
}

TEST(JsonWriterTest, EveryCharacterComesBack) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  all += "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
  EXPECT_EQ(nlohmann::json::parse(*json_string(all)).get<std::string>(), all);
  EXPECT_EQ(*json_string(all), nlohmann::json(all).dump());
}

TEST(JsonWriterTest, BytesThatAreNotUtf8AreRefusedOrReplaced) {
  for (const std::string bad : {"\x80", "a\xe2\x82", "\xe2\x82z", "\xc0\xaf", "\xed\xa0\x80",
                                "\xf4\x90\x80\x80", "\xff\xfe", "\xf0\x9f\x98"}) {
    EXPECT_FALSE(json_string(bad)) << bad;
    EXPECT_EQ(lenient_json_string(bad),
              nlohmann::json(bad).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
        << bad;
  }
}

TEST(JsonWriterTest, NumbersComeBack) {
  for (const double x : {0., 1.5, -2e300, 1e-310, 123456789.25}) {
    JsonWriter json;
    json.value(x);
    EXPECT_EQ(nlohmann::json::parse(json.take()).get<double>(), x);
  }
  JsonWriter json;
  json.array(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(json.take(), "[-9223372036854775808,null]");
}

}  // namespace
}  // namespace reel
