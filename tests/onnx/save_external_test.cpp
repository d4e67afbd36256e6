// Models with their weights in a second file. The limit of 2 GiB is lowered.
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

struct Model {
  Tensor w, b;
};
Tensor predict(const Model& m, const Tensor& x) { return matmul(x, m.w) + m.b; }

class SaveExternalTest : public InOwnFolder {
 protected:
  SaveExternalTest() : InOwnFolder("model.onnx") {}

  std::string data(int number) const { return str(path, ".data-", number); }
  SaveOnnxOptions options(std::int64_t max_file_bytes) const {
    return {.arguments = {"", "x"}, .parameters = {0}, .max_file_bytes = max_file_bytes};
  }
  /// Saves the model with weights of 64 KiB.
  void save(double factor, std::int64_t max_file_bytes = 1000) const {
    manual_seed(3);
    const Model m{random_normal({128, 128}) * factor, ones({128}) * factor};
    save_onnx(path, predict, std::tuple{m, ones({2, 128})}, options(max_file_bytes));
  }
  void expect_values_of(double factor) const {
    manual_seed(3);
    const Model m{random_normal({128, 128}) * factor, ones({128}) * factor};
    const Tensor x = ones({2, 128});
    expect_same_bits(load_onnx(path)({{"x", x}}).begin()->second, predict(m, x));
  }
};

TEST_F(SaveExternalTest, WeightsAreReadFromTheSecondFile) {
  save(2);
  EXPECT_LT(fs::file_size(path), 2000U);
  EXPECT_GE(fs::file_size(data(1)), 128U * 128 * 4);
  expect_values_of(2);
}

TEST_F(SaveExternalTest, SmallModelsHaveOneFile) {
  save(2, 1 << 20);
  EXPECT_FALSE(fs::exists(data(1)));
  expect_values_of(2);
}

TEST_F(SaveExternalTest, TensorsAreAligned) {
  manual_seed(4);
  const Model m{random_normal({300, 300}), random_normal({300})};
  save_onnx(path, predict, std::tuple{m, ones({2, 300})}, options(1000));
  ::onnx::ModelProto model;
  std::ifstream stream(path, std::ios::binary);
  ASSERT_TRUE(model.ParseFromIstream(&stream));
  int external = 0;
  for (const auto& tensor : model.graph().initializer())
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") EXPECT_EQ(entry.value(), "model.onnx.data-1");
      if (entry.key() != "offset") continue;
      ++external;
      EXPECT_EQ(std::stoll(entry.value()) % 4096, 0);
    }
  EXPECT_EQ(external, 2);
  expect_same_bits(load_onnx(path).parameters.at("w"), m.w);
  expect_same_bits(load_onnx(path).parameters.at("b"), m.b);
}

TEST_F(SaveExternalTest, SavingAgainTakesANewNameAndRemovesTheOldData) {
  save(2);
  save(3);
  EXPECT_FALSE(fs::exists(data(1)));
  EXPECT_TRUE(fs::exists(data(2)));
  expect_values_of(3);
  save(4, 1 << 20);
  EXPECT_FALSE(fs::exists(data(2)));
  expect_values_of(4);
}

TEST_F(SaveExternalTest, FilesThatAreNoDataOfTheModelStay) {
  std::ofstream(data(1)) << "mine";
  save(2);
  save(3);
  EXPECT_EQ(fs::file_size(data(1)), 4U);
  EXPECT_FALSE(fs::exists(data(2)));
  EXPECT_TRUE(fs::exists(data(3)));
  expect_values_of(3);
}

TEST_F(SaveExternalTest, DataUnderTheNameOfALostFileStay) {
  save(2);
  fs::remove(data(1));
  std::ofstream(path + ".data-of-mine") << "mine";
  save(3);
  expect_values_of(3);
}

TEST_F(SaveExternalTest, DataLieBesideTheTargetOfALink) {
  const fs::path run = fs::absolute(path).parent_path() / "run";
  fs::create_directory(run);
  fs::create_symlink(run / "first.onnx", path);
  save(2);
  EXPECT_TRUE(fs::exists(run / "first.onnx.data-1"));
  EXPECT_FALSE(fs::exists(data(1)));
  save(3);
  EXPECT_FALSE(fs::exists(run / "first.onnx.data-1"));
  EXPECT_TRUE(fs::exists(run / "first.onnx.data-2"));
  fs::remove(path);
  fs::copy(run, fs::path(path).parent_path() / "copy");
  fs::create_symlink(run / "first.onnx", path);
  manual_seed(3);
  const Model m{random_normal({128, 128}) * 3, ones({128}) * 3};
  const OnnxModel copied = load_onnx((fs::path(path).parent_path() / "copy/first.onnx").string());
  expect_same_bits(copied.parameters.at("w"), m.w);
}

TEST_F(SaveExternalTest, AModelThatCannotBeWrittenLeavesNoData) {
  fs::create_directory(path);
  EXPECT_THROW(save(2), IoError);
  EXPECT_FALSE(fs::exists(data(1)));
}

TEST_F(SaveExternalTest, OnnxBytesRefusesTensorsBeyondTheLimit) {
  const Model m{ones({128, 128}), ones({128})};
  EXPECT_EQ(message_of<OnnxError>([&] {
              onnx_bytes(predict, std::tuple{m, ones({2, 128})}, options(1000));
            }),
            "save_onnx: parameters and captured tensors take 66048 bytes, more than "
            "max_file_bytes, which is 1000; onnx_bytes returns one file, save_onnx writes a second "
            "one for them");
}

}  // namespace
}  // namespace reel
