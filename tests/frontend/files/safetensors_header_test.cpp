// Files of safetensors with unusual or damaged headers.
#include "reel/frontend/files/safetensors.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class SafetensorsHeaderTest : public InOwnFolder {
 protected:
  SafetensorsHeaderTest() : InOwnFolder("model.safetensors") {}
  /// Writes a file with this header and `data_bytes` bytes of data.
  void write_file(const std::string& header, std::size_t data_bytes) const {
    const std::uint64_t length = header.size();
    write(path, std::string(reinterpret_cast<const char*>(&length), 8) + header +
                    std::string(data_bytes, '\1'));
  }
  /// Returns the message of loading a tree of one tensor "x" f32[2], without the path. Expects that
  /// the tree is unchanged.
  std::string load_error() const {
    std::map<std::string, Tensor> tree{{"x", tensor({7.0, 8.0})}};
    const std::string message = message_of<IoError>([&] {
      load_safetensors(path, tree);
      return 0;
    });
    expect_values(tree["x"], {7, 8});
    const std::string start = "load_safetensors: " + path;
    EXPECT_EQ(message.substr(0, start.size()), start);
    return message.substr(std::min(start.size(), message.size()));
  }
  /// Returns the message for this header, with as much data as it declares.
  std::string header_error(const std::string& header, std::size_t data_bytes = 8) const {
    write_file(header, data_bytes);
    return load_error();
  }
};

TEST_F(SafetensorsHeaderTest, AFileThatCannotBeReadNamesPathAndReason) {
  EXPECT_EQ(message_of<IoError>([&] { return read_safetensors_metadata(path); }),
            "read_safetensors_metadata: cannot open " + path + ": No such file or directory");
  EXPECT_EQ(message_of<IoError>([&] { return read_safetensors_metadata(folder_.string()); }),
            "read_safetensors_metadata: " + folder_.string() + " is no regular file");
  EXPECT_EQ(message_of<IoError>([&] { return read_safetensors_metadata("/dev/zero"); }),
            "read_safetensors_metadata: /dev/zero is no regular file");
}

TEST_F(SafetensorsHeaderTest, ATruncatedFileIsRefusedWhereverItEnds) {
  save_safetensors(path, std::map<std::string, Tensor>{{"x", ones({2})}});
  const std::string whole = bytes_of(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(path, whole.substr(0, size));
    EXPECT_NE(load_error().find(" is damaged: "), std::string::npos) << size;
  }
  write(path, whole + '\0');
  EXPECT_EQ(load_error(), " is damaged: its tensors take 8 bytes, but it has 9 bytes of data");
}

TEST_F(SafetensorsHeaderTest, AFlippedByteOfTheHeaderNeverCrashes) {
  save_safetensors(path, std::map<std::string, Tensor>{{"x", ones({2})}}, {{"key", "value"}});
  const std::string whole = bytes_of(path);
  for (std::size_t i = 0; i + 8 < whole.size(); ++i) {
    for (const int flip : {1, 32, 128}) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      write(path, changed);
      std::map<std::string, Tensor> tree{{"x", tensor({7.0, 8.0})}};
      try {
        load_safetensors(path, tree);
        expect_values(tree["x"], {1, 1});
      } catch (const IoError&) {
        expect_values(tree["x"], {7, 8});
      }
    }
  }
}

TEST_F(SafetensorsHeaderTest, AbsurdLengthsAreRefused) {
  write(path, std::string(8, '\xff') + "{}");
  EXPECT_EQ(load_error(),
            " is damaged: its header would have 18446744073709551615 bytes, more than the "
            "100000000 that are allowed");
  write(path, std::string("\x40\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(
      load_error(),
      " is damaged: its header would have 64 bytes, but the file has 10; it may be truncated");
}

TEST_F(SafetensorsHeaderTest, AHeaderThatIsNoJsonSaysWhere) {
  EXPECT_EQ(header_error(""), " is not a safetensors file: its header does not begin with {");
  EXPECT_EQ(header_error("[]"), " is not a safetensors file: its header does not begin with {");
  EXPECT_NE(header_error(R"({"x": )").find("the header is no JSON: "), std::string::npos);
  EXPECT_NE(header_error("{} x").find("the header is no JSON: "), std::string::npos);
  EXPECT_NE(header_error("{\"\xff\": 1}").find("the header is no JSON: "), std::string::npos);
  EXPECT_EQ(header_error(R"({"x":)" + std::string(100000, '[')),
            " is damaged: the header is no JSON: byte 13: expected fewer brackets inside each "
            "other");
  EXPECT_LT(header_error("{\"" + std::string(100000, 'a')).size(), 500u);
}

TEST_F(SafetensorsHeaderTest, EveryLieOfAHeaderIsNamed) {
  const auto x = [](const std::string& dtype, const std::string& shape,
                    const std::string& offsets) {
    return R"({"x":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}}";
  };
  const std::string start = " is damaged: tensor \"x\": ";
  EXPECT_EQ(header_error(R"({"x":1})"), start + "is no object");
  EXPECT_EQ(header_error(R"({"x":{"dtype":"F32","shape":[2]}})"), start + "has no data_offsets");
  EXPECT_EQ(header_error(x("1", "[2]", "[0,8]")), start + "its dtype is no string");
  EXPECT_EQ(header_error(x("\"F32\"", "2", "[0,8]")), start + "its shape is no list");
  EXPECT_EQ(header_error(x("\"F32\"", "[-2]", "[0,8]")),
            start + "its shape has -2, which is no size");
  EXPECT_EQ(header_error(x("\"F32\"", "[2.0]", "[0,8]")),
            start + "its shape has 2.0, which is no size");
  EXPECT_EQ(header_error(x("\"F32\"", "[true]", "[0,8]")),
            start + "its shape has true, which is no size");
  EXPECT_EQ(header_error(x("\"F32\"", "[18446744073709551616]", "[0,8]")),
            start + "its shape has 18446744073709551616, which is no size");
  std::string axes = "1";
  for (int i = 1; i < 100'000; ++i) axes += ",1";
  EXPECT_EQ(header_error(x("\"F32\"", "[" + axes + "]", "[0,4]")),
            start + "its shape has 100000 axes, more than 64");
  EXPECT_EQ(header_error(x("\"F32\"", "[1e999]", "[0,8]")),
            start + "its shape has 1e999, which is no size");
  EXPECT_EQ(header_error(x("\"F32\"", "[2]", "[0,8],\"dtype\":\"F32\"")),
            " is damaged: the header has the key \"dtype\" twice");
  EXPECT_EQ(header_error(x("\"F32\"", "[4294967296,4294967296,2]", "[0,8]")),
            start + "its sizes multiply to more bytes than 63 bits hold");
  EXPECT_EQ(header_error(x("\"F32\"", "[0,18446744073709551615]", "[0,0]"), 0),
            start + "its sizes multiply to more bytes than 63 bits hold");
  EXPECT_EQ(header_error(x("\"F32\"", "[4611686018427387904,4,0]", "[0,0]"), 0),
            start + "its sizes multiply to more bytes than 63 bits hold");
  EXPECT_EQ(header_error(x("\"F32\"", "[2]", "[0,8,16]")),
            start + "data_offsets are not two numbers");
  EXPECT_EQ(header_error(x("\"F32\"", "[2]", "[8,0]")),
            start + "data_offsets [8, 0] end before they begin");
  EXPECT_EQ(header_error(x("\"F32\"", "[2]", "[-8,0]")),
            start + "its data_offsets has -8, which is no size");
  EXPECT_EQ(header_error(x("\"F32\"", "[2]", "[0,18446744073709551615]")),
            start +
                "data_offsets [0, 18446744073709551615] end beyond the 8 bytes of data in the "
                "file; it may be truncated");
  EXPECT_EQ(header_error(x("\"F32\"", "[3]", "[0,8]")),
            start + "its dtype and shape take 12 bytes, its data_offsets 8");
  EXPECT_EQ(header_error(x("\"F32\"", "[2]", "[1,9]"), 9),
            " is damaged: bytes 0 to 1 of the data belong to no tensor");
  EXPECT_EQ(header_error(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                         R"("y":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                         12),
            " is damaged: the data of tensor \"y\" overlap those of another one");
  EXPECT_EQ(header_error(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                         R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
            " is damaged: the header has the key \"x\" twice");
  EXPECT_EQ(header_error(R"({"__metadata__":[]})", 0), " is damaged: __metadata__ is no object");
  EXPECT_EQ(header_error(R"({"__metadata__":{"a":"","\u0061":""}})", 0),
            " is damaged: the header has the key \"a\" twice");
  EXPECT_EQ(header_error(R"({"__metadata__":{"a":1}})", 0),
            " is damaged: __metadata__ has a value that is no string, under \"a\"");
}

TEST_F(SafetensorsHeaderTest, ATensorOfAnUnknownDTypeIsRefusedWhenItIsAskedFor) {
  write_file(R"({"new":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[8,11]},)"
             R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
             11);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"new", "x"}));
  EXPECT_EQ(file.tensor("x").numel(), 2);
  const std::string message = "SafetensorsFile: " + path +
                              ": tensor \"new\" has elements of type F6_E2M3, which this library "
                              "does not know";
  EXPECT_EQ(message_of<DTypeError>([&] { return file.type("new"); }), message);
  EXPECT_EQ(message_of<DTypeError>([&] { return file.tensor("new"); }), message);
  std::map<std::string, Tensor> tree{{"x", zeros({2})}};
  load_safetensors(path, tree, {.allow_extra = true});
  tree["new"] = zeros({4});
  EXPECT_EQ(load_error(), " holds another model:\n  new: F6_E2M3[4] in the file, not expected");
}

TEST_F(SafetensorsHeaderTest, MetadataOfNullAreNone) {
  write_file(R"({"__metadata__": null,"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  EXPECT_TRUE(read_safetensors_metadata(path).empty());
  EXPECT_EQ(SafetensorsFile(path).names(), std::vector<std::string>{"x"});
}

TEST_F(SafetensorsHeaderTest, EscapesInNamesAreRead) {
  write_file(R"({"\u0061\n\ud83d\ude00":{"\u0064type":"F\u0033\u0032","shape":[2],)"
             R"("data_offsets":[0,8],"more":[{"any":null}]},"__met\u0061data__":{"\"":"\\"}})",
             8);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.names(), std::vector<std::string>{"a\n\xF0\x9F\x98\x80"});
  EXPECT_EQ(file.type("a\n\xF0\x9F\x98\x80"), TensorType(f32, {2}));
  EXPECT_EQ(file.metadata(), (Metadata{{"\"", "\\"}}));
}

TEST_F(SafetensorsHeaderTest, BytesThatAreNoBooleansAreRefused) {
  write_file(R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 0);
  std::ofstream(path, std::ios::app | std::ios::binary) << '\1' << '\2';
  std::map<std::string, Tensor> tree{{"x", zeros({2}, boolean)}};
  EXPECT_EQ(message_of<IoError>([&] {
              load_safetensors(path, tree);
              return 0;
            }),
            "load_safetensors: " + path +
                " is damaged: tensor \"x\" has booleans that are neither 0 nor 1");
}

}  // namespace
}  // namespace reel
