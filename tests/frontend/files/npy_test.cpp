#include "reel/frontend/files/npy.h"

#include <cstdlib>

#include "reel/core/ops.h"
#include "reel/frontend/jit.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

class NpyTest : public InOwnFolder {
 protected:
  NpyTest() : InOwnFolder("x.npy") {}

  std::string bytes() const { return bytes_of(path); }
  void write(const std::string& content) const { InOwnFolder::write(path, content); }
  /// Writes a file of format 1.0.
  void write(const std::string& dictionary, const std::string& data) const {
    const std::size_t length = dictionary.size();
    write("\x93NUMPY\1\0"s + static_cast<char>(length & 255) + static_cast<char>(length >> 8) +
          dictionary + data);
  }
  Tensor load(const std::string& descr, const std::string& shape, const std::string& data,
              const std::string& fortran_order = "False") const {
    write("{'descr': '" + descr + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape +
              ", }\n",
          data);
    return load_npy(path);
  }
  /// Returns the message of loading without the path.
  template <class E = IoError>
  std::string error() const {
    const std::string message = message_of<E>([&] { return load_npy(path); });
    const std::string start = "load_npy: " + path;
    EXPECT_EQ(message.substr(0, start.size()), start);
    return message.substr(std::min(start.size(), message.size()));
  }
  std::string error_of(const std::string& dictionary, const std::string& data = "") const {
    write(dictionary, data);
    return error();
  }
};

TEST_F(NpyTest, WritesTheBytesOfNumPy) {
  save_npy(path, tensor({{1.0, 2.0, 3.0}}, {Dim("batch", 1), Dim("feature", 3)}));
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }";
  EXPECT_EQ(bytes(), "\x93NUMPY\1\0\x76\0"s + header + std::string(117 - header.size(), ' ') +
                         "\n\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40"s);
  save_npy(path, tensor({true, false}));
  EXPECT_NE(bytes().find("'|b1', 'fortran_order': False, 'shape': (2,), }"), std::string::npos);
  save_npy(path, scalar(1, i64));
  EXPECT_NE(bytes().find("'<i8', 'fortran_order': False, 'shape': (), }"), std::string::npos);
}

TEST_F(NpyTest, EveryDtypeComesBackToTheBit) {
  for (const Tensor& x :
       {tensor({{1.5, -0.0}, {NAN, INFINITY}}), tensor({0.1, -1e300}, {}, f64),
        tensor({-5, 2147483647}), tensor({std::int64_t{1} << 40}, {}, i64),
        tensor({true, false, true}), scalar(2.5), zeros({0, 4}), zeros({2, 0, 3}, boolean)}) {
    save_npy(path, x);
    expect_same_bits(load_npy(path), x);
  }
}

TEST_F(NpyTest, AxesAreNamedOnReading) {
  save_npy(path, tensor({{1, 2, 3}, {4, 5, 6}}));
  const Dim batch("batch", 2);
  const Tensor x = load_npy(path, {batch, Dim("time")});
  EXPECT_EQ(str(x.type()), "i32[batch=2,time=3]");
  EXPECT_TRUE(x.dims()[0] == batch);
  const Dim time("time", tensor({3, 1}, {batch}));
  EXPECT_TRUE(load_npy(path, {batch, time}).dims()[1].is_ragged());
  EXPECT_EQ(message_of<ShapeError>([&] {
              return load_npy(path, {Dim("time"), batch});
            }),
            "load_npy: " + path +
                " has i32[2,3], which the dims [time,batch=2] do not fit; give a Dim of the same "
                "size for each axis, or no dims");
}

TEST_F(NpyTest, OtherOrdersOfAxesAndBytesBecomeOurs) {
  const std::string data = "\0\1\0\2\0\3\0\4\0\5\0\6"s;
  expect_values(load(">i2", "(2, 3)", data), {1, 2, 3, 4, 5, 6});
  const Tensor x = load(">i2", "(2, 3)", data, "True");
  EXPECT_EQ(x.shape(), (std::vector<std::int64_t>{2, 3}));
  expect_values(x, {1, 3, 5, 2, 4, 6});
  EXPECT_EQ(str(load_npy(path, {Dim("a"), Dim("b")}).type()), "i32[a=2,b=3]");
  expect_values(load_npy(path, {Dim("a"), Dim("b")}), {1, 3, 5, 2, 4, 6});
  expect_values(load(">f4", "(1,)", "\x3f\x80\0\0"s), {1});
  expect_values(load(">f8", "()", "\x3f\xf0\0\0\0\0\0\0"s, "True"), {1});
}

TEST_F(NpyTest, NarrowElementsAreWidenedExactly) {
  const auto expect = [](const Tensor& x, DType dtype, const std::vector<double>& values) {
    EXPECT_EQ(x.dtype(), dtype);
    expect_values(x, values, 0);
  };
  expect(load("|u1", "(2,)", "\1\xff"), i32, {1, 255});
  expect(load("|i1", "(2,)", "\1\xff"), i32, {1, -1});
  expect(load("u1", "(2,)", "\1\xff"), i32, {1, 255});
  expect(load("<u2", "(1,)", "\xff\xff"), i32, {65535});
  expect(load("<u4", "(1,)", "\xff\xff\xff\xff"), i64, {4294967295.0});
  expect(load("=f2", "(2,)", "\x00\x3c\xff\xfb"s), f32, {1, -65504});
}

TEST_F(NpyTest, LaterFormatsAndPythonsOtherSpellingsAreRead) {
  const std::string dictionary = "{\"shape\":(2L,),\t'fortran_order':False,'descr':\"<i4\"}   \n";
  for (const char version : {'\2', '\3'}) {
    write("\x93NUMPY"s + version + '\0' + static_cast<char>(dictionary.size()) + "\0\0\0"s +
          dictionary + "\1\0\0\0\2\0\0\0"s);
    expect_values(load_npy(path), {1, 2});
  }
}

TEST_F(NpyTest, ElementsThatNoDtypeHoldsAreNamed) {
  const std::string ending = "', which no dtype holds; convert them with astype before saving";
  for (const std::string descr : {"<u8", "<c8", "|O", "<U3", "<f16", "<M8[ns]", "f4", ""}) {
    write("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (), }", "");
    EXPECT_EQ(error<DTypeError>(), " has elements of NumPy's type '" + descr + ending);
  }
  write("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }", "");
  EXPECT_EQ(error<DTypeError>(), " has records as elements; save each field by itself");
}

TEST_F(NpyTest, EveryLieOfAHeaderIsNamed) {
  const std::string start = " is damaged: ", data(8, '\1');
  const auto of = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  EXPECT_EQ(error_of("{'descr': '<f4', 'fortran_order': False, }"),
            start + "its header lacks one of 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(error_of("{'descr': '<f4', 'descr': '<f4'}"),
            start + "its header has the key 'descr' twice");
  EXPECT_EQ(error_of("{'size': 4}"), start + "its header has the key 'size'");
  EXPECT_EQ(error_of("{'shape': (2"), start + "its header ends within an expression");
  EXPECT_EQ(error_of("{'shape"), start +
                                     "its header is no dictionary as NumPy writes it, from "
                                     "here on: 'shape");
  EXPECT_EQ(error_of(of("(2,)") + "x", data),
            start + "its header is no dictionary as NumPy writes it, from here on: x");
  EXPECT_EQ(error_of("{'shape' 2}   \n"),
            start + "its header is no dictionary as NumPy writes it, from here on: 2}");
  EXPECT_EQ(error_of("{'shape': (2   \n"), start + "its header ends within an expression");
  EXPECT_EQ(error_of("{'fortran_order': 1}"),
            start + "its header is no dictionary as NumPy writes it, from here on: 1}");
  EXPECT_EQ(error_of(of("(-2,)"), data), start +
                                             "its header is no dictionary as NumPy writes it, "
                                             "from here on: -2,), }");
  EXPECT_EQ(error_of(of("(1 2)"), data),
            start + "its header is no dictionary as NumPy writes it, from here on: 2), }");
  EXPECT_EQ(error_of(of("(2)"), data), start + "its shape is a number, not a tuple");
  EXPECT_EQ(error_of(of("(99999999999999999999,)")),
            start + "its shape has a size that 64 bits do not hold");
  EXPECT_EQ(error_of(of("(4294967296, 4294967296, 0)")),
            start + "its sizes multiply to more bytes than 63 bits hold");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1, ";
  EXPECT_EQ(error_of(of(many + ")"), data), start + "its shape has more than 64 axes");
  EXPECT_EQ(error_of(of("(1000000000000,)"), data),
            start +
                "its shape takes 4000000000000 bytes, but it has 8 behind the header; it may "
                "be truncated");
  EXPECT_EQ(error_of(of("(1,)"), data), start + "4 bytes stand behind its last element");
  EXPECT_EQ(error_of("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\2"),
            start + "it has booleans that are neither 0 nor 1");
}

TEST_F(NpyTest, OtherFilesAreRefused) {
  write("");
  EXPECT_EQ(error(), " is damaged: it has 0 bytes, too few for a header");
  write("PK\3\4 a zip archive");
  EXPECT_EQ(error(),
            " is not an .npy file: it looks like a zip archive, as torch.save and numpy.savez "
            "write them");
  write("\1\2\3");
  EXPECT_EQ(error(), " is not an .npy file: it does not begin with \"\\x93NUMPY\"");
  write("\x93NUMPY\4\0\0\0"s);
  EXPECT_EQ(error(), " is damaged: its format is 4.0, not 1.0, 2.0 or 3.0");
  write("\x93NUMPY\2\0\xff\xff\xff\xff"s);
  EXPECT_EQ(error(),
            " is damaged: its header would have 4294967295 bytes, but the file has 12; it "
            "may be truncated");
  write("\x93NUMPY\2\0\1\0\1\0"s + std::string(65537, ' '));
  EXPECT_EQ(error(),
            " is damaged: its header would have 65537 bytes, more than the 65536 that are "
            "allowed");
  EXPECT_EQ(message_of<IoError>([&] { return load_npy("missing.npy"); }),
            "load_npy: cannot open missing.npy: No such file or directory");
}

TEST_F(NpyTest, ATruncatedFileIsRefusedWhereverItEnds) {
  save_npy(path, ones({2}));
  const std::string whole = bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    EXPECT_NE(error().find(" is damaged: "), std::string::npos) << size;
  }
}

TEST_F(NpyTest, TensorsThatCannotBeStoredAreRefused) {
  EXPECT_EQ(
      message_of<ArgumentError>([&] {
        save_npy(path, Tensor());
        return 0;
      }),
      "save_npy: was given an empty Tensor; assign a tensor to it first, and do not use one that "
      "was moved");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              save_npy(path, ones(Dims(65, Dim(1))));
              return 0;
            }),
            "save_npy: a tensor of 65 axes; NumPy's arrays have 64 at most");
  EXPECT_THROW(jit([&](const Tensor& x) {
                 save_npy(path, x);
                 return x;
               })(ones({2})),
               TraceError);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(NpyTest, ATracedFunctionCanReadAFile) {
  save_npy(path, tensor({1.0, 2.0}));
  const Dim in("in", 2);
  auto f = jit([&](const Tensor& x) { return x + load_npy(path, {in}); });
  expect_values(f(ones({in})), {2, 3});
  expect_values(f(zeros({in})), {1, 2});
}

TEST_F(NpyTest, NumPyReadsOurFilesAndWeReadItsOwn) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null"))
    GTEST_SKIP() << "/usr/bin/python3 has no numpy (Debian: python3-numpy)";
  const Dim batch("batch", 2);
  save_npy(path, tensor({{1.5, -2.0, 3.0}, {4.0, 5.0, 6.0}}, {batch, Dim("feature", 3)}));
  const std::string script =
      "import numpy as np; x = np.load('" + path + "'); p = '" + folder_.string() +
      "/'; assert x.dtype == np.float32 and x.shape == (2, 3) and x[0, 1] == -2;" + "b = open('" +
      path + "', 'rb').read(); np.save(p + 'same', x);" +
      "assert open(p + 'same.npy', 'rb').read() == b;" +
      "np.save(p + 'fortran', np.asfortranarray(x)); np.save(p + 'big', x.astype('>f8'));" +
      "np.save(p + 'half', x.astype('f2')); np.save(p + 'scalar', np.uint32(7));" +
      "np.lib.format.write_array(open(p + 'v3.npy', 'wb'), x, (3, 0))";
  ASSERT_EQ(std::system(("/usr/bin/python3 -c \"" + script + '"').c_str()), 0);
  const Tensor x = load_npy(path);
  for (const char* name : {"fortran.npy", "half.npy", "v3.npy"})
    expect_same_bits(load_npy((folder_ / name).string()), x);
  expect_same_bits(load_npy((folder_ / "big.npy").string()), cast(x, f64));
  expect_same_bits(load_npy((folder_ / "scalar.npy").string()), scalar(7, i64));
}

}  // namespace
}  // namespace reel
