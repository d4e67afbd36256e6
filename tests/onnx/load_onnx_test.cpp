// load_onnx: the models that it refuses, and its messages.
#include <filesystem>
#include <fstream>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

TEST(LoadOnnxTest, ListsAllOpsWithoutARule) {
  EXPECT_EQ(message_of<OnnxError>([] {
              model_of(R"(g (float[1, 1, 4, 4] x, float[1, 5] r) => (float[1, 1, 4, 4] y) {
                a = MaxRoiPool <pooled_shape = [4, 4]> (x, r)
                b = MaxRoiPool <pooled_shape = [4, 4]> (a, r)
                y = Add(x, b)
              })");
            }),
            "the model has ops or types without a rule in Reel:\n"
            "  op MaxRoiPool of version 17: nodes of a, of b\n"
            "in load_onnx of the data");
}

TEST(LoadOnnxTest, ListsTypesWithoutADtype) {
  EXPECT_EQ(message_of<OnnxError>([] {
              model_of("g (string[2] x, complex64[2] z) => (string[2] y) { y = Identity(x) }");
            }),
            "the model has ops or types without a rule in Reel:\n"
            "  type complex64: node input z\n"
            "  type string: nodes input x, of y\n"
            "in load_onnx of the data");
}

TEST(LoadOnnxTest, RefusesOpSetsThatAreNewer) {
  EXPECT_EQ(
      message_of<OnnxError>([] { model_of("g (float[2] x) => (float[2] y) { y = Abs(x) }", 28); }),
      "load_onnx: the data breaks a rule of ONNX: op set 28 is newer than 27; export with "
      "opset_version=27");
}

// ONNX's inference of shapes reads beyond the shapes of these models; load_onnx does not use it.
TEST(LoadOnnxTest, WrongRanksAreErrorsOfTheCall) {
  const OnnxModel model = model_of(
      "g (float[2] x, float[2] w, float[2] r) => (float[2] y) { y = RNN <hidden_size = 1> (x, w, "
      "r) }",
      6);
  const Tensor x = tensor({1., 2.});
  EXPECT_THROW(model({{"x", x}, {"w", x}, {"r", x}}), Error);
}

TEST(LoadOnnxTest, TheFileMayBeMissing) {
  EXPECT_EQ(message_of<IoError>([] { load_onnx("nowhere.onnx"); }),
            "load_onnx: cannot open nowhere.onnx: No such file or directory");
}

TEST(LoadOnnxTest, FilesOfOtherKindsAreNamed) {
  const std::string path = ::testing::TempDir() + "load_onnx_other_kind.onnx";
  std::ofstream(path) << "root:x:0:0:root\n";
  EXPECT_EQ(message_of<OnnxError>([&] { load_onnx(path); }),
            "load_onnx: " + path + " is damaged, or no ONNX model; it looks like text");
}

TEST(LoadOnnxTest, BytesWithoutAModelAreAnError) {
  EXPECT_EQ(message_of<OnnxError>([] { load_onnx_bytes(""); }),
            "load_onnx: the data is no ONNX model: it has no graph");
  EXPECT_EQ(message_of<OnnxError>([] { load_onnx_bytes("hello"); }),
            "load_onnx: the bytes are damaged, or no ONNX model");
}

TEST(LoadOnnxTest, EveryBeginningOfAFileGivesAnErrorOrAModel) {
  const std::string bytes = model_bytes(R"(
    g (float[n] x) => (float[n] y) <float[3] w = {1, 2, 3}> { y = Add(x, w) })");
  int models = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    try {
      load_onnx_bytes(std::string_view(bytes).substr(0, size));
      ++models;
    } catch (const Error&) {
    }
  }
  EXPECT_GE(models, 1);
}

TEST(LoadOnnxTest, CallsNameMissingAndUnknownInputs) {
  const OnnxModel model = model_of("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }");
  const Tensor x = tensor({1., 2.});
  EXPECT_EQ(message_of<ArgumentError>([&] {
              model({{"x", x}});
            }),
            "OnnxModel: input z is missing; the inputs are x, z");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              model({{"x", x}, {"z", x}, {"w", x}});
            }),
            "OnnxModel: there is no input w; the inputs are x, z");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              model({{"x", x}, {"w", x}});
            }),
            "OnnxModel: there is no input w; the inputs are x, z");
  EXPECT_EQ(message_of<DTypeError>([&] {
              model({{"x", x}, {"z", cast(x, f64)}});
            }),
            "OnnxModel: input z is f64[2], but the model declares float, which is f32 in Reel");
  EXPECT_EQ(message_of<ShapeError>([&] {
              model({{"x", x}, {"z", tensor({1.})}});
            }),
            "OnnxModel: input z is f32[1], but the model declares the sizes [2]");
  EXPECT_EQ(message_of<ArgumentError>([] { OnnxModel()({}); }),
            "OnnxModel: the model is empty; load_onnx returns one");
}

TEST(LoadOnnxTest, ErrorsOfOpsNameTheNode) {
  const OnnxModel model = model_of("g (float[n] x, float[m] z) => (float[k] y) { y = Add(x, z) }");
  EXPECT_NE(message_of<ShapeError>([&] {
              model({{"x", tensor({1., 2.})}, {"z", tensor({1., 2., 3.})}});
            }).find("in node of y (Add)"),
            std::string::npos);
}

}  // namespace
}  // namespace reel
