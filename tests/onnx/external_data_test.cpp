// Tensors in other files: only below the model's folder, and only as many bytes as there are.
#include <filesystem>
#include <fstream>

#include "reel/onnx/proto.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

namespace fs = std::filesystem;

/// A model with its initializer w, float[2], in a file `weights` with the floats 1, 2, 3.
class OnnxExternalDataTest : public InOwnFolder {
 protected:
  OnnxExternalDataTest() : InOwnFolder("model.onnx") {}

  void SetUp() override {
    InOwnFolder::SetUp();
    const std::vector<float> floats{1, 2, 3};
    std::ofstream(beside("weights"), std::ios::binary)
        .write(reinterpret_cast<const char*>(floats.data()), 12);
  }

  std::string beside(const std::string& file) const {
    return (fs::path(path).parent_path() / file).string();
  }

  /// Writes the model with these entries about the file, and loads it.
  OnnxModel load(const std::vector<std::pair<std::string, std::string>>& entries,
                 std::int64_t size = 2) const {
    ::onnx::ModelProto model;
    model.ParseFromString(
        model_bytes("g (float[n] x) => (float[n] y) <float[1] w = {0}> { y = Add(x, w) }"));
    auto& tensor = *model.mutable_graph()->mutable_initializer(0);
    tensor.clear_float_data();
    tensor.clear_raw_data();
    tensor.set_dims(0, size);
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    return load_onnx(path);
  }
  std::string error(const std::vector<std::pair<std::string, std::string>>& entries,
                    std::int64_t size = 2) const {
    const std::string message = message_of<OnnxError>([&] { load(entries, size); });
    return message.substr(0, message.find('\n'));
  }
};

TEST_F(OnnxExternalDataTest, ANameWithANulByteIsRefused) {
  EXPECT_EQ(error({{"location", std::string("weights\0x", 9)}}),
            "tensor w: has its elements in a file whose name has a NUL byte");
}

TEST_F(OnnxExternalDataTest, IsRead) {
  expect_values(
      load({{"location", "weights"}, {"offset", "4"}, {"length", "8"}}).parameters.at("w"), {2, 3});
}

TEST_F(OnnxExternalDataTest, MayBeInAFolderBelow) {
  fs::create_directory(beside("below"));
  fs::rename(beside("weights"), beside("below/weights"));
  expect_values(load({{"location", "below/weights"}}).parameters.at("w"), {1, 2});
}

TEST_F(OnnxExternalDataTest, AboveTheFolderIsRefused) {
  fs::create_directory(beside("inner"));
  path = beside("inner/model.onnx");
  const std::string outside = "which is not below the model's folder";
  EXPECT_NE(error({{"location", "../weights"}}).find("../weights"), std::string::npos);
  fs::create_symlink(fs::absolute(beside("../weights")), beside("link"));
  EXPECT_EQ(error({{"location", "link"}}),
            "tensor w: has its elements in the file link, " + outside);
  EXPECT_NE(error({{"location", fs::absolute(beside("../weights")).string()}}).find("weights"),
            std::string::npos);
}

TEST_F(OnnxExternalDataTest, MustHaveAllBytes) {
  EXPECT_EQ(error({{"location", "weights"}, {"offset", "8"}}),
            "tensor w: has 8 bytes at 8 of weights, which has 12");
  EXPECT_EQ(error({{"location", "weights"}}, std::int64_t{1} << 50),
            "tensor w: has 4503599627370496 bytes at 0 of weights, which has 12");
  EXPECT_EQ(error({{"location", "weights"}, {"length", "4"}}),
            "tensor w: has 4 bytes in weights, but its sizes make 8");
  EXPECT_EQ(error({{"location", "weights"}, {"offset", "-1"}}),
            "tensor w: has elements in another file, at -1, which is no position");
}

TEST_F(OnnxExternalDataTest, AModelInMemoryHasNone) {
  load({{"location", "weights"}});
  const std::string bytes = bytes_of(path);
  EXPECT_THROW(load_onnx_bytes(bytes), OnnxError);
}

}  // namespace
}  // namespace reel
