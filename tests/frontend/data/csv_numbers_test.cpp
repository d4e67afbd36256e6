// Numbers of load_csv as tables of practice have them: small, large, missing, and in other forms.
#ifdef REEL_HAS_CSV

#include <bit>
#include <cmath>
#include <limits>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

using Texts = std::vector<std::string>;

class CsvNumbersTest : public InOwnFolder {
 protected:
  CsvNumbersTest() : InOwnFolder("table.csv") {}

  /// Returns the fields as the column "a" of a table with a second column.
  CsvTable table_of(const Texts& fields, const CsvOptions& options = {}) {
    const char end = options.separator;
    std::string bytes = str("a", end, "b\n");
    for (const std::string& field : fields) bytes += str(field, end, "1\n");
    write(path, bytes);
    return load_csv(path, options);
  }
  template <class T>
  std::vector<T> read(const Texts& fields, const CsvOptions& options = {}) {
    return table_of(fields, options).numbers("a", {}, dtype_of<T>()).template to_vector<T>();
  }
  /// Returns the error of a field, from "is" on.
  std::string refusal(const std::string& field, DType dtype, const CsvOptions& options = {}) {
    const CsvTable table = table_of({field}, options);
    const std::string text = message_of<IoError>([&] { table.numbers("a", {}, dtype); });
    const std::string begin = str("load_csv: ", path, ", line 2: \"", field, "\" in column \"a\" ");
    EXPECT_EQ(text.substr(0, begin.size()), begin);
    return text.substr(std::min(begin.size(), text.size()));
  }
};

TEST_F(CsvNumbersTest, BelowTheSmallestAreSubnormalOrZero) {
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(
      read<float>({"1e-40", "1e-45", "7.1e-46", "7e-46", "1e-50", "1e-400", "1e-99999999999999"}),
      (std::vector<float>{1e-40f, least, least, 0, 0, 0, 0}));
  EXPECT_EQ(read<double>({"1e-310", "5e-324", "1e-400", "0." + std::string(400, '0') + "1"}),
            (std::vector<double>{1e-310, std::numeric_limits<double>::denorm_min(), 0, 0}));
  // The digits in front of the exponent count too.
  EXPECT_EQ(read<float>({"1" + std::string(60, '0') + "e-200", "0e99999999999999999999"}),
            (std::vector<float>{0, 0}));
  EXPECT_TRUE(std::signbit(read<float>({"-1e-50"})[0]));
}

TEST_F(CsvNumbersTest, TooLargeOnesNameTheLimitAndAWiderType) {
  const std::string limit = "is too large for f32, whose largest number is 3.40282e+38";
  EXPECT_EQ(refusal("1e39", f32), limit + "; read the column as f64");
  EXPECT_EQ(refusal("-1e39", f32), limit + "; read the column as f64");
  EXPECT_EQ(refusal("1e400", f32), limit);
  EXPECT_EQ(refusal("0." + std::string(60, '0') + "1e120", f32),
            limit + "; read the column as f64");
  EXPECT_EQ(refusal("1e400", f64), "is too large for f64, whose largest number is 1.79769e+308");
  EXPECT_EQ(refusal("1e99999999999999999999", f64),
            "is too large for f64, whose largest number is 1.79769e+308");
  EXPECT_EQ(refusal("2147483648", i32),
            "is too large for i32, whose largest number is 2147483647; read the column as i64");
  EXPECT_EQ(refusal("-2147483649", i32),
            "is too small for i32, whose smallest number is -2147483648; read the column as i64");
  EXPECT_EQ(refusal("9223372036854775808", i64),
            "is too large for i64, whose largest number is 9223372036854775807; read the column "
            "as f64");
  EXPECT_EQ(read<float>({"3.4028235e38"})[0], std::numeric_limits<float>::max());
  EXPECT_EQ(read<std::int32_t>({"2147483647", "-2147483648", "+7"}),
            (std::vector<std::int32_t>{2147483647, std::numeric_limits<std::int32_t>::min(), 7}));
  EXPECT_EQ(read<std::int64_t>({"-9223372036854775808"})[0],
            std::numeric_limits<std::int64_t>::min());
}

TEST_F(CsvNumbersTest, BooleansAreWordsInAnyCase) {
  EXPECT_EQ(read<bool>({"True", "TRUE", "true", "1", "False", "FALSE", "false", "0"}),
            (std::vector<bool>{true, true, true, true, false, false, false, false}));
  EXPECT_EQ(refusal("yes", boolean), "is no boolean");
  EXPECT_EQ(refusal("truely", boolean), "is no boolean");
  EXPECT_EQ(refusal("2", boolean), "is no boolean; read the column as f64");
  EXPECT_EQ(refusal("True", f32), "is no f32; read the column as boolean");
}

TEST_F(CsvNumbersTest, NanAndInfinityInAnyCase) {
  const auto numbers = read<double>({"nan", "NaN", "NAN", "-nan", "inf", "-Inf", "Infinity"});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(numbers[i]));
  EXPECT_EQ(std::vector<double>(numbers.begin() + 4, numbers.end()),
            (std::vector<double>{INFINITY, -INFINITY, INFINITY}));
  EXPECT_EQ(refusal("nan", i64), "is no i64; read the column as f64");
}

TEST_F(CsvNumbersTest, OtherFormsAreNoNumbers) {
  for (const char* text : {"x", "1x", "0x10", "1e", "+", "++5", "1 2", "1'000"})
    EXPECT_EQ(refusal(text, f32), "is no f32") << text;
  EXPECT_EQ(refusal("+-5", f32), "is no f32");
  EXPECT_EQ(refusal("+-5", i32), "is no i32");
  EXPECT_EQ(refusal("30.0", i32), "is no i32; read the column as f64");
}

TEST_F(CsvNumbersTest, MissingOnesAreNanOrAnyOtherNumber) {
  const CsvOptions options{.missing = {"", "NA", "-999"}};
  const auto numbers = read<float>({"1", "", "NA", "-999", " NA "}, options);
  EXPECT_EQ(numbers[0], 1);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_TRUE(std::isnan(numbers[i])) << i;
  EXPECT_EQ(table_of({"", "NA"}, options).texts("a"), (Texts{"", "NA"}));
  const CsvOptions zero{.missing = {"", "NA"}, .missing_value = 0};
  EXPECT_EQ(read<double>({"NA", "2"}, zero), (std::vector<double>{0, 2}));
  EXPECT_EQ(read<std::int32_t>({"NA", "2"}, zero), (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(read<std::int64_t>({"NA", "2"}, zero), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(read<bool>({"NA", "True"}, zero), (std::vector<bool>{false, true}));
}

TEST_F(CsvNumbersTest, MissingOnesHaveToFitTheType) {
  const Texts missing{"NA"};
  const std::string no_nan =
      " has no NaN; give CsvOptions::missing_value, or read the column as f64";
  EXPECT_EQ(refusal("NA", i32, {.missing = missing}), "is missing, and i32" + no_nan);
  EXPECT_EQ(refusal("NA", boolean, {.missing = missing}), "is missing, and boolean" + no_nan);
  const auto refused = [&](double value, DType dtype) {
    return refusal("NA", dtype, {.missing = missing, .missing_value = value});
  };
  const std::string value = "is missing, and CsvOptions::missing_value, ";
  EXPECT_EQ(refused(0.5, i64), value + "0.5, is no i64");
  EXPECT_EQ(refused(2147483648., i32), value + "2.14748e+09, is no i32");
  EXPECT_EQ(refused(9223372036854775808., i64), value + "9.22337e+18, is no i64");
  EXPECT_EQ(refused(1e39, f32), value + "1e+39, is no f32");
  EXPECT_EQ(refused(-1, boolean), value + "-1, is no boolean");
  EXPECT_EQ(refused(INFINITY, i32), value + "inf, is no i32");
}

TEST_F(CsvNumbersTest, ErrorsOfEmptyFieldsNameTheOption) {
  EXPECT_EQ(refusal("", f32), "is no f32; CsvOptions{.missing = {\"\"}} makes it a missing number");
  EXPECT_EQ(refusal("N/A", i64),
            "is no i64; CsvOptions{.missing = {\"N/A\"}} makes it a missing number");
  EXPECT_EQ(refusal("", f32, {.missing = {"NA"}}),
            "is no f32; CsvOptions{.missing = {\"\"}} makes it a missing number");
}

TEST_F(CsvNumbersTest, NumbersMayHaveDecimalCommas) {
  const CsvOptions commas{.separator = ';', .decimal = ','};
  EXPECT_EQ(read<float>({"1,5", "-2,5e3", "7"}, commas), (std::vector<float>{1.5, -2500, 7}));
  EXPECT_EQ(refusal("1.5", f32, commas), "is no f32; CsvOptions{.decimal = '.'} reads it");
  EXPECT_EQ(refusal("1.234,5", f32, commas), "is no f32");
  EXPECT_EQ(refusal("1,5", f32, {.separator = ';'}),
            "is no f32; CsvOptions{.decimal = ','} reads it");
}

TEST_F(CsvNumbersTest, OptionsThatDoNotFitTogetherAreRefused) {
  const auto refused = [&](const CsvOptions& options) {
    write(path, "a\n");
    return message_of<ArgumentError>([&] { load_csv(path, options); });
  };
  EXPECT_EQ(refused({.decimal = ','}),
            "load_csv: separator and decimal are both ','; tables with decimal commas have "
            "{.separator = ';'}");
  EXPECT_EQ(refused({.decimal = ';'}), "load_csv: decimal is a point or a comma, got ';'");
  for (const char separator : {'"', '\n', '\r'})
    EXPECT_EQ(refused({.separator = separator}),
              "load_csv: separator must be neither a quote nor a line end");
  EXPECT_EQ(read<float>({"1.5"}, {.separator = '\t'})[0], 1.5f);
}

/// Returns a text of ASCII as UTF-16.
std::string as_utf16(const std::string& text, std::endian order, const std::string& mark) {
  std::string result = mark;
  for (const char c : text)
    result += order == std::endian::little ? std::string{c, '\0'} : std::string{'\0', c};
  return result;
}

TEST_F(CsvNumbersTest, WideEncodingsAreNamed) {
  const std::string text = "a,b\n1,2\n";
  const auto refused = [&](const std::string& bytes) {
    write(path, bytes);
    return message_of<IoError>([&] { load_csv(path); });
  };
  const auto error = [&](const char* encoding) {
    return str("load_csv: ", path, " is text in ", encoding,
               ", and load_csv reads UTF-8: convert it by iconv -f ", encoding,
               " -t UTF-8, or save it as UTF-8");
  };
  EXPECT_EQ(refused(as_utf16(text, std::endian::little, "\xff\xfe")), error("UTF-16LE"));
  EXPECT_EQ(refused(as_utf16(text, std::endian::big, "\xfe\xff")), error("UTF-16BE"));
  EXPECT_EQ(refused(as_utf16(text, std::endian::little, "")), error("UTF-16LE"));
  EXPECT_EQ(refused(as_utf16(text, std::endian::big, "")), error("UTF-16BE"));
  EXPECT_EQ(refused(std::string("\xff\xfe\0\0a\0\0\0", 8)), error("UTF-32LE"));
  EXPECT_EQ(refused(std::string("\0\0\xfe\xff\0\0\0a", 8)), error("UTF-32BE"));
  write(path, "\xef\xbb\xbf\"\xc3\xa4\"\n1\n");  // UTF-8, with its mark
  expect_values(load_csv(path).numbers("\xc3\xa4"), {1});
}

TEST_F(CsvNumbersTest, EveryNumberOfTheWriterIsReadAgain) {
  const std::vector<double> numbers{0,
                                    -0.0,
                                    1e-310,
                                    std::numeric_limits<double>::denorm_min(),
                                    std::numeric_limits<double>::max(),
                                    INFINITY,
                                    -INFINITY,
                                    1. / 3};
  {
    CsvWriter writer(path, {"x", "y"});
    for (const double number : numbers) writer.row({number, number < 1});
    writer.row({NAN, true});
  }
  const CsvTable table = load_csv(path);
  auto read = table.numbers("x", {}, f64).to_vector<double>();
  EXPECT_TRUE(std::isnan(read.back()));
  read.pop_back();
  EXPECT_EQ(read, numbers);
  EXPECT_TRUE(std::signbit(read[1]));
  EXPECT_EQ(table.numbers("y", {}, boolean).to_vector<bool>()[4], false);
}

TEST_F(CsvNumbersTest, EveryTextOfTheWriterIsReadAgain) {
  const Texts texts{"", "\tx", "x\t", " ", "\xef\xbb\xbfx", "NA", "\r", "\"", ""};
  for (const char* column : {"", "\xef\xbb\xbf", "\t"}) {
    {
      CsvWriter writer(path, {column});
      for (const std::string& text : texts) writer.row({text});
    }
    EXPECT_EQ(load_csv(path).texts(column), texts);
    const std::string before = bytes_of(path);
    { CsvWriter again(path, {column}, 9); }
    EXPECT_EQ(bytes_of(path), before);
  }
  { CsvWriter(path, {"count"}).row({std::numeric_limits<std::uint64_t>::max()}); }
  EXPECT_EQ(load_csv(path).texts("count"), Texts{"18446744073709551615"});
}

}  // namespace
}  // namespace reel

#endif
