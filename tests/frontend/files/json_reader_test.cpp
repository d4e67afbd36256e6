// JsonReader: texts that are JSON, and texts that are not.
#include "reel/frontend/files/json_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace reel {
namespace {

/// Returns an empty text for valid JSON, and the reason otherwise.
std::string error_of(std::string_view text) {
  const JsonReader::Fail fail = [](const std::string& reason) { throw std::runtime_error(reason); };
  JsonReader json(text, 8, fail);
  try {
    json.value();
    json.end();
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

std::string text_of(std::string_view string) {
  const JsonReader::Fail fail = [](const std::string& reason) { throw std::runtime_error(reason); };
  return JsonReader(string, 0, fail).string().text();
}

TEST(JsonReaderTest, AgreesWithAnotherReader) {
  for (const char* text : {"{}",
                           "[]",
                           " [ ] ",
                           "[1, -2.5e+3, 0, -0, 0.5, 1E9]",
                           "{\"a\": [true, false, null], \"b\": {}}",
                           "\"\\u00e9\\ud83d\\ude00\\n\\/\"",
                           "\"\xc3\xa9\xf0\x9f\x98\x80\"",
                           "",
                           "[",
                           "[1",
                           "[1,",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "--1",
                           "0x1",
                           "tru",
                           "nul",
                           "nan",
                           "\"",
                           "\"\\\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xc3\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xf4\x90\x80\x80\"",
                           "\"\xe0\x80\x80\"",
                           "[] []",
                           "[]x",
                           "{]",
                           "[}",
                           "1 2",
                           "'a'"})
    EXPECT_EQ(error_of(text).empty(), nlohmann::json::accept(text)) << text;
  EXPECT_FALSE(error_of(std::string_view("\"a\0\"", 4)).empty());
  EXPECT_FALSE(error_of(std::string_view("[]\0", 3)).empty());
}

TEST(JsonReaderTest, StringsAreDecodedAsByAnotherReader) {
  for (const char* text : {"\"\"", "\"plain\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                           "\"\\u0000\\u007f\\u00e9\\u20ac\\uFFFF\"", "\"a\\ud83d\\ude00b\""})
    EXPECT_EQ(text_of(text), nlohmann::json::parse(text).get<std::string>()) << text;
}

TEST(JsonReaderTest, ErrorsNameTheByte) {
  EXPECT_EQ(error_of("[1 2]"), "byte 3: expected ]");
  EXPECT_EQ(error_of("{\"a\" 1}"), "byte 5: expected :");
  EXPECT_EQ(error_of("{1: 2}"), "byte 1: expected a string");
  EXPECT_EQ(error_of("[\"a"), "it ends where \" at the end of a string is expected");
  EXPECT_EQ(error_of("[[[[[[[[[]]]]]]]]]"), "byte 9: expected fewer brackets inside each other");
  EXPECT_EQ(error_of("[[[[[[[[]]]]]]]]"), "");
}

}  // namespace
}  // namespace reel
