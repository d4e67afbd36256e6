// Errors name the kind that a file of another kind looks like, instead of calling it damaged.
#include "reel/frontend/files/file_kind.h"

#include <string>

#include "reel/core/ops.h"
#include "reel/frontend/files/npy.h"
#include "reel/frontend/files/safetensors.h"
#include "reel/frontend/files/sequence.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

using std::string_literals::operator""s;

class FileKindTest : public InOwnFolder {
 protected:
  FileKindTest() : InOwnFolder("file") {}
};

const std::pair<std::string, std::string> kFiles[] = {
    {"PK\3\4\x14\0\0\0\0\0"s, "a zip archive, as torch.save and numpy.savez write them"},
    {"\x80\2}q\0X\6\0\0\0weight"s, "a pickle, as Python and old versions of torch.save write them"},
    {"\x80\4K\1."s, "a pickle, as Python and old versions of torch.save write them"},
    {"\x1f\x8b\x08\0\0\0\0\0\0\3"s, "a file compressed by gzip"},
    {"\x28\xb5\x2f\xfd\0\0\0\0"s, "a file compressed by zstd"},
    {"\x89HDF\r\n\x1a\n\0\0\0"s, "an HDF5 file"},
    {"GGUF\3\0\0\0\x23\1\0\0"s, "a GGUF file"},
    {"<!DOCTYPE html>\n<html lang=\"en\">", "an HTML page"},
    {"\n <HTML><head>", "an HTML page"},
    {"version https://git-lfs.github.com/spec/v1\n",
     "a pointer of Git LFS in place of the file itself"},
    {"{\"model_type\": \"lstm\"}", "JSON"},
    {"step,mode,loss\n1,eager,0.5\n", "text"},
    {std::string(257, '\1') + "ustar", "a tar archive"},
};

TEST_F(FileKindTest, EveryReaderNamesTheKindOfAnotherFile) {
  for (const auto& [bytes, kind] : kFiles) {
    write(path, bytes + std::string(bytes[0] == '\1' ? 9 : 0, '\1'));
    const std::string safetensors = path + " is not a safetensors file: it looks like " + kind;
    EXPECT_EQ(message_of<IoError>([&] { return SafetensorsFile(path); }),
              "SafetensorsFile: " + safetensors);
    EXPECT_EQ(message_of<IoError>([&] { return read_safetensors_metadata(path); }),
              "read_safetensors_metadata: " + safetensors);
    const std::string npy = path + " is not an .npy file: it looks like " + kind;
    EXPECT_EQ(message_of<IoError>([&] { return load_npy(path); }), "load_npy: " + npy);
    EXPECT_EQ(message_of<IoError>([&] { return Sequence(path).steps(); }), "Sequence: " + npy);
  }
}

TEST_F(FileKindTest, TheLibrarysOwnFormatsAreToldApart) {
  save_npy(path, ones({3}));
  EXPECT_EQ(message_of<IoError>([&] { return SafetensorsFile(path); }),
            "SafetensorsFile: " + path + " is not a safetensors file: it looks like an .npy file");
  save_safetensors(path, std::map<std::string, Tensor>{{"x", ones({3})}});
  EXPECT_EQ(message_of<IoError>([&] { return load_npy(path); }),
            "load_npy: " + path + " is not an .npy file: it looks like a safetensors file");
}

TEST_F(FileKindTest, ErrorsOfUnknownBytesNameTheMissingStart) {
  write(path, "\1\2\3\4\5\6\7\0\1\2\3"s);
  EXPECT_EQ(
      message_of<IoError>([&] { return SafetensorsFile(path); }),
      "SafetensorsFile: " + path + " is not a safetensors file: its header does not begin with {");
  EXPECT_EQ(message_of<IoError>([&] { return load_npy(path); }),
            "load_npy: " + path + " is not an .npy file: it does not begin with \"\\x93NUMPY\"");
}

}  // namespace
}  // namespace reel
