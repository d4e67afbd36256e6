// load_csv, CsvWriter and load_lines.
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

using Texts = std::vector<std::string>;

class LinesTest : public InOwnFolder {
 protected:
  LinesTest() : InOwnFolder("lines.txt") {}
  Texts of(const std::string& bytes) {
    write(path, bytes);
    return load_lines(path);
  }
};

TEST_F(LinesTest, LinesMayEndInEveryWay) {
  EXPECT_EQ(of("a\nbc\n"), (Texts{"a", "bc"}));
  EXPECT_EQ(of("a\r\nbc"), (Texts{"a", "bc"}));
  EXPECT_EQ(of("\n\na"), (Texts{"", "", "a"}));
  EXPECT_EQ(of(""), Texts{});
  EXPECT_EQ(of(std::string("a\0b\n\xff", 5)), (Texts{std::string("a\0b", 3), "\xff"}));
  EXPECT_EQ(message_of<IoError>([&] { return load_lines(path + ".not"); }),
            str("load_lines: cannot open ", path, ".not: No such file or directory"));
}

#ifdef REEL_HAS_CSV

class CsvTest : public InOwnFolder {
 protected:
  CsvTest() : InOwnFolder("table.csv") {}
  CsvTable of(const std::string& bytes, const CsvOptions& options = {}) {
    write(path, bytes);
    return load_csv(path, options);
  }
  std::string refusal(const std::string& bytes) {
    return message_of<IoError>([&] { return of(bytes); });
  }
};

TEST_F(CsvTest, ColumnsOfTextsAndNumbers) {
  const CsvTable table = of("name,age,weight\nAnn,30,1.5\n\"Bob, jr.\",+4,-2e3\n");
  EXPECT_EQ(table.rows(), 2);
  EXPECT_EQ(table.columns(), (Texts{"name", "age", "weight"}));
  EXPECT_EQ(table.texts("name"), (Texts{"Ann", "Bob, jr."}));
  expect_values(table.numbers("age", {}, i32), {30, 4});
  EXPECT_EQ(table.numbers("age", {}, i64).dtype(), i64);
  const Tensor both = table.numbers(Texts{"age", "weight"}, {Dim("rows"), Dim("column", 2)});
  EXPECT_EQ(str(both.type()), "f32[rows=2,column=2]");
  expect_values(both, {30, 1.5, 4, -2000});
  expect_values(table.numbers({"age", "weight"}),
                {30, 1.5, 4, -2000});  // not a text of two iterators
  expect_values(table.numbers({"age"}, {}, i64), {30, 4});
  expect_values(table.numbers("weight", {Dim("batch")}, f64), {1.5, -2000});
  EXPECT_EQ(str(table.numbers("weight").type()), "f32[2]");
}

TEST_F(CsvTest, QuotesLineEndsAndSeparators) {
  const CsvTable table =
      of("\xef\xbb\xbf"
         "a;b\r\n\"x\"\"y\";\"two\nlines\"\r\n\r\n ; z \r\n",
         {.separator = ';'});
  EXPECT_EQ(table.texts("a"), (Texts{"x\"y", ""}));
  EXPECT_EQ(table.texts("b"), (Texts{"two\nlines", "z"}));
  const CsvTable headless = of("1,2\n3,4", {.has_header = false});
  expect_values(headless.numbers("1"), {2, 4});
  expect_values(of("b\ntrue\n0\n1\nfalse\n").numbers("b", {}, boolean), {1, 0, 1, 0});
  EXPECT_EQ(of("a,b\n").rows(), 0);
  EXPECT_EQ(str(of("a,b\n").numbers("a").type()), "f32[0]");
  EXPECT_EQ(of("").rows(), 0);
}

TEST_F(CsvTest, ErrorsNameLineAndColumn) {
  const std::string name = str("load_csv: ", path);
  EXPECT_EQ(refusal("a,b\n1,2\n3\n"), name + ", line 3: 1 field, but there are 2 columns");
  EXPECT_EQ(refusal("a,b\n\"1\n2\",3,4\n"), name + ", line 3: 3 fields, but there are 2 columns");
  EXPECT_EQ(refusal("a,a\n"), name + ", line 1: two columns are called \"a\"");
  EXPECT_EQ(refusal("a,b\n1,x\"y\n"),
            name +
                ", line 2: a quote at a wrong place; a field with quotes is enclosed in quotes, "
                "and those inside are doubled");
  refusal("a\n\"never ends\n");
  const CsvTable table = of("a,b\n\n1,2\n3,x\n,2.5\n");
  EXPECT_EQ(message_of<IoError>([&] { return table.numbers("b"); }),
            name + ", line 4: \"x\" in column \"b\" is no f32");
  EXPECT_EQ(
      message_of<IoError>([&] { return table.numbers("a"); }),
      name +
          ", line 5: \"\" in column \"a\" is no f32; CsvOptions{.missing = {\"\"}} makes it a "
          "missing number");
  EXPECT_EQ(message_of<IoError>([&] { return table.texts("c"); }),
            name + " has no column \"c\"; it has a, b");
  const CsvTable large = of("a\n2147483648\n");
  message_of<IoError>([&] { return large.numbers("a", {}, i32); });
  expect_values(large.numbers("a", {}, i64), {2147483648.});
  EXPECT_EQ(message_of<IoError>([&] { return load_csv("no.csv"); }),
            "load_csv: cannot open no.csv: No such file or directory");
}

TEST_F(CsvTest, WrittenTablesAreReadBackExactly) {
  const float third = 1.0f / 3;
  {
    CsvWriter writer(path, {"step", "a, \"b\"", "text"});
    writer.row({1, third, "two\nlines"});
    writer.row({std::int64_t{1} << 40, scalar(0.1, f64), " spaces "});
    writer.row({true, scalar(2), "x"});
  }
  const CsvTable table = load_csv(path);
  EXPECT_EQ(table.columns(), (Texts{"step", "a, \"b\"", "text"}));
  EXPECT_EQ(table.texts("text"), (Texts{"two\nlines", " spaces ", "x"}));
  EXPECT_EQ(table.numbers("step", {}, i64).to_vector<std::int64_t>()[1], std::int64_t{1} << 40);
  EXPECT_EQ(table.numbers("a, \"b\"").to_vector<float>()[0], third);
  EXPECT_EQ(table.numbers("a, \"b\"", {}, f64).to_vector<double>()[1], 0.1);
}

#else

TEST(CsvTest, SaysThatLibcsvIsMissing) {
  EXPECT_EQ(message_of<Error>([] { return load_csv("any.csv"); }),
            "load_csv: this build of Reel reads no CSV files: libcsv was missing when it was "
            "configured; install it (Debian: libcsv-dev) and configure again");
}

#endif

class CsvWriterTest : public InOwnFolder {
 protected:
  CsvWriterTest() : InOwnFolder("losses.csv") {}
};

TEST_F(CsvWriterTest, RowsOfTheFewestDigits) {
  CsvWriter losses(path, {"step", "loss"});
  losses.row({1, 0.1f});
  losses.row({2, 0.1});
  losses.row({3, scalar(1e-9)});
  losses.row({4, scalar(NAN)});
  EXPECT_EQ(bytes_of(path), "step,loss\n1,0.1\n2,0.1\n3,1e-09\n4,nan\n");
}

TEST_F(CsvWriterTest, AResumedRunHasTheSameFile) {
  const auto run = [&](std::int64_t from, std::int64_t to) {
    CsvWriter losses(path, {"step", "text"}, from);
    for (std::int64_t step = from; step < to; ++step) losses.row({step, "a\n\"b\""});
  };
  run(0, 6);
  const std::string whole = bytes_of(path);
  run(0, 4);
  run(2, 6);
  EXPECT_EQ(bytes_of(path), whole);
  run(6, 6);
  EXPECT_EQ(bytes_of(path), whole);
}

TEST_F(CsvWriterTest, RefusesOtherColumnsAndUnwritablePaths) {
  { CsvWriter(path, {"step", "loss"}).row({1, 2}); }
  const std::string before = bytes_of(path);
  EXPECT_EQ(message_of<IoError>([&] { CsvWriter(path, {"step"}, 1); }),
            str("CsvWriter: ", path, " has other columns: its first line is not step"));
  EXPECT_EQ(message_of<IoError>([&] {
              CsvWriter(path, {"step", "loss"}, 2);
            }),
            str("CsvWriter: ", path, " has 1 rows, fewer than the 2 to keep"));
  EXPECT_EQ(bytes_of(path), before);
  EXPECT_EQ(message_of<ArgumentError>([&] {
              CsvWriter(path, {"step"}).row({1, 2});
            }),
            str("CsvWriter: ", path, " has 1 columns, got 2 fields"));
  EXPECT_EQ(message_of<IoError>([&] { CsvWriter(path + "/x", {"step"}); }),
            str("CsvWriter: cannot write ", path, "/x: Not a directory"));
  message_of<ArgumentError>([&] { CsvWriter(path, {}); });
  message_of<ArgumentError>([&] { CsvWriter(path, {"a"}, -1); });
}

}  // namespace
}  // namespace reel
