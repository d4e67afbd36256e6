// Numbers out of range in models from strangers: each is an error of the node that has it.
#include <limits>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

using Inputs = std::map<std::string, Tensor>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Returns the first line of the error of a call.
template <class E = ArgumentError>
std::string error_of(const std::string& graph, const Inputs& inputs, int version = 17,
                     const LoadOnnxOptions& options = {}) {
  const OnnxModel model = load_onnx_bytes(model_bytes(graph, version), options);
  const std::string message = message_of<E>([&] { model(inputs); });
  return message.substr(0, message.find('\n'));
}

Tensor integers(const std::vector<std::int64_t>& numbers) { return tensor(numbers); }

TEST(OutOfRangeTest, WindowsOfPoolsAreBounded) {
  const Inputs x{{"x", ones({1, 1, 4})}};
  const auto pool = [&](const std::string& attributes) {
    return error_of(
        "g (float[1, 1, 4] x) => (float[a, b, c] y) { y = MaxPool <" + attributes + "> (x) }", x);
  };
  EXPECT_EQ(pool("kernel_shape = [3], dilations = [4611686018427387905]"),
            "MaxPool: a size, stride, dilation or pad is 4611686018427387905");
  EXPECT_EQ(pool("kernel_shape = [1], strides = [9223372036854775807], auto_pad = \"SAME_UPPER\""),
            "MaxPool: a size, stride, dilation or pad is 9223372036854775807");
  EXPECT_EQ(pool("kernel_shape = [1], pads = [9223372036854775807, 1]"),
            "MaxPool: a size, stride, dilation or pad is 9223372036854775807");
}

TEST(OutOfRangeTest, ConvTransposeNeedsASizeForEachAxis) {
  EXPECT_EQ(error_of("g (float[1, 1, 2, 2] x, float[1, 1, 2, 2] w) => (float[a, b, c, d] y) {\n"
                     "  y = ConvTranspose <output_shape = [4]> (x, w) }",
                     {{"x", ones({1, 1, 2, 2})}, {"w", ones({1, 1, 2, 2})}}),
            "ConvTranspose: output_shape has too few sizes");
}

TEST(OutOfRangeTest, GroupsOfConvFitI64) {
  EXPECT_EQ(error_of("g (float[1, 1, 2] x, float[0, 2, 1] w) => (float[a, b, c] y) {\n"
                     "  y = Conv <group = 9223372036854775807> (x, w) }",
                     {{"x", ones({1, 1, 2})}, {"w", ones({0, 2, 1})}}),
            "Conv: a size, stride, dilation or pad is 9223372036854775807");
}

TEST(OutOfRangeTest, MaxUnpoolHasNoNegativeAxes) {
  EXPECT_EQ(error_of("g (float[1, 1, 2] x, int64[1, 1, 2] i) => (float[a, b, c] y) {\n"
                     "  y = MaxUnpool <kernel_shape = [2], strides = [2], pads = [9, 9]> (x, i) }",
                     {{"x", ones({1, 1, 2})}, {"i", reshape(integers({0, 1}), {1, 1, 2})}}),
            "MaxUnpool: the result would have an axis of size -14");
}

TEST(OutOfRangeTest, ZeroPointsOfVectorsNeedAnAxis) {
  const Tensor x = cast(integers({1, 2}), i32);
  EXPECT_EQ(error_of<Error>("g (uint8[2] a, uint8[2] b, uint8[2] z) => (int32 y) {\n"
                            "  y = MatMulInteger(a, b, z) }",
                            {{"a", x}, {"b", x}, {"z", x}}),
            "MatMulInteger: axis -2 is out of range for rank 1");
}

TEST(OutOfRangeTest, RegionsHaveFewBinsAndSamples) {
  const auto align = [](const std::string& attributes, double last) {
    return error_of(
        "g (float[1, 1, 4, 4] x, float[1, 4] r, int64[1] b) => (float[a, c, d, e] y) {\n"
        "  y = RoiAlign <" +
            attributes + "> (x, r, b) }",
        {{"x", ones({1, 1, 4, 4})},
         {"r", reshape(tensor({0., 0., 2., last}, {}, f32), {1, 4})},
         {"b", integers({0})}});
  };
  EXPECT_EQ(align("output_height = 4611686018427387904", 2),
            "RoiAlign: a region has 4611686018427387904 bins of 1 samples along an axis");
  EXPECT_EQ(align("output_height = 0", 2),
            "RoiAlign: a region has 0 bins of 1 samples along an axis");
  EXPECT_EQ(align("output_height = 2", 1e30),
            "RoiAlign: a region has 2 bins of 5e+29 samples along an axis");
}

TEST(OutOfRangeTest, ResizeTakesFiniteRegions) {
  const auto resize = [](const std::vector<double>& roi) {
    return error_of(
        "g (float[4] x, float[2] r, float[0] s, int64[1] n) => (float[m] y) {\n"
        "  y = Resize <mode = \"linear\", coordinate_transformation_mode = \"tf_crop_and_resize\">"
        " (x, r, s, n) }",
        {{"x", ones({4})}, {"r", tensor(roi, {}, f32)}, {"s", zeros({0})}, {"n", integers({3})}});
  };
  EXPECT_EQ(resize({kNan, 1}), "Resize: axis 0 of f32[4] gets the scale 0.75 and the roi nan to 1");
}

TEST(OutOfRangeTest, AxesOfOldSoftmaxAreChecked) {
  EXPECT_EQ(error_of("g (float[2, 2] x) => (float[2, 2] y) {\n"
                     "  y = Softmax <axis = 4294967296> (x) }",
                     {{"x", ones({2, 2})}}, 11),
            "Softmax: axis 4294967296 is out of range for rank 2");
}

TEST(OutOfRangeTest, PartsOfSplitsFitTheAxis) {
  const Tensor lengths = integers({1, std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(error_of("g (float[2] x, int64[2] n) => (float[a] y, float[b] z) {\n"
                     "  y, z = Split(x, n) }",
                     {{"x", ones({2})}, {"n", lengths}}),
            "Split: a part has the length 9223372036854775807");
  EXPECT_EQ(error_of("g (float[2] x, int64[2] n) => (int64 y) {\n"
                     "  s = SplitToSequence(x, n)\n  y = SequenceLength(s) }",
                     {{"x", ones({2})}, {"n", lengths}}),
            "SplitToSequence: the lengths do not fit the axis");
}

TEST(OutOfRangeTest, CenterCropPadTakesNoNegativeSize) {
  EXPECT_EQ(
      error_of("g (float[2] x, int64[1] n) => (float[a] y) { y = CenterCropPad(x, n) }",
               {{"x", ones({2})}, {"n", integers({std::numeric_limits<std::int64_t>::min()})}}, 18),
      "CenterCropPad: a size is -9223372036854775808");
}

TEST(OutOfRangeTest, MelWeightsHaveEdges) {
  EXPECT_EQ(error_of("g (int64 n, int64 l, int64 r, float a, float b) => (float[c, d] y) {\n"
                     "  y = MelWeightMatrix(n, l, r, a, b) }",
                     {{"n", scalar(2, i64)},
                      {"l", scalar(8, i64)},
                      {"r", scalar(8, i64)},
                      {"a", scalar(kNan, f32)},
                      {"b", scalar(4, f32)}}),
            "MelWeightMatrix: an edge of a triangle is nan");
}

TEST(OutOfRangeTest, TransformsAreCheckedBeforeTheyArePadded) {
  EXPECT_EQ(error_of("g (float[1, 4, 1] x, int64 n) => (float[a, b, c] y) { y = DFT(x, n) }",
                     {{"x", ones({1, 4, 1})}, {"n", scalar(std::int64_t{1} << 62, i64)}}),
            "DFT: transforms 1 to 16777216 samples, got 4611686018427387904");
}

TEST(OutOfRangeTest, ListsOfPositionsCountAsValues) {
  EXPECT_EQ(error_of<OnnxError>("g (float[2] x, int64[2] p) => (float[a] y) {\n"
                                "  y = Pad <mode = \"reflect\"> (x, p) }",
                                {{"x", ones({2})}, {"p", integers({1 << 30, 0})}}, 17,
                                {.max_bytes = 1 << 20}),
            "Pad: the values of the call take more bytes than LoadOnnxOptions::max_bytes, which is "
            "1048576");
}

TEST(OutOfRangeTest, LrnOverMoreChannelsThanThereAreIsExact) {
  const OnnxModel model = model_of(
      "g (float[1, 2, 1] x) => (float[1, 2, 1] y) {\n"
      "  y = LRN <size = 4611686018427387904, alpha = 1.0, beta = 1.0, bias = 2.0> (x) }");
  const Tensor x = reshape(tensor({3.F, 4.F}), {1, 2, 1});
  // The sum of squares, divided by the size, vanishes.
  expect_values(model({{"x", x}}).at("y"), {1.5, 2}, 1e-6);
}

TEST(OutOfRangeTest, SizesWhoseProductIsOutOfRangeAreRefused) {
  const std::string graph = "g (float[1] x, int64[3] n) => (float[a, b, c] y) { y = Expand(x, n) }";
  const auto sizes = [](std::int64_t last) {
    return Inputs{{"x", ones({1})}, {"n", integers({0, std::int64_t{1} << 40, last})}};
  };
  EXPECT_EQ(error_of<OnnxError>(graph, sizes(1 << 20)),
            "Expand: the sizes of f32[0,1099511627776,1048576] are out of range");
  EXPECT_EQ(error_of<ShapeError>(graph, sizes(1 << 30)),
            "expand: f32[0,1099511627776,1073741824]: the product of its sizes other than 0, in "
            "bytes, is more than 64 bits can count");
}

}  // namespace
}  // namespace reel
