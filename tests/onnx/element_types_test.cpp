// Element types of few bits: their numbers, rounding to the bit, and packed data.
#include <bit>
#include <cmath>
#include <limits>

#include "reel/onnx/onnx_error.h"
#include "reel/onnx/read_tensor.h"
#include "reel/onnx/stored.h"
#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

using imported::ElementType;
using imported::number_of_bits;
using imported::stored_as;
using ::onnx::TensorProto;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr ElementType kFloats[] = {ElementType::float16,      ElementType::bfloat16,
                                   ElementType::float8e4m3fn, ElementType::float8e4m3fnuz,
                                   ElementType::float8e5m2,   ElementType::float8e5m2fnuz,
                                   ElementType::float4e2m1};

std::vector<float> numbers_of(ElementType type) {
  std::vector<float> numbers;
  for (std::uint32_t bits = 0; bits < 1U << imported::bits_of(type); ++bits)
    numbers.push_back(number_of_bits(bits, type));
  return numbers;
}

TEST(OnnxElementTypesTest, NumbersOfATypeAreStoredAsTheyAre) {
  for (const ElementType type : kFloats) {
    const std::vector<float> numbers = numbers_of(type);
    const auto stored = stored_as(tensor(numbers), type, {.saturates = false}).to_vector<float>();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      EXPECT_TRUE(std::bit_cast<std::uint32_t>(stored[i]) ==
                      std::bit_cast<std::uint32_t>(numbers[i]) ||
                  (std::isnan(stored[i]) && std::isnan(numbers[i])))
          << type << " bits " << i << ": " << stored[i] << " instead of " << numbers[i];
  }
}

TEST(OnnxElementTypesTest, NumbersBetweenAreRoundedToTheNearestHalvesToEven) {
  for (const ElementType type : kFloats) {
    const std::vector<float> numbers = numbers_of(type);
    const std::size_t positive = numbers.size() / 2;
    for (std::size_t i = 0; i + 1 < positive; ++i) {
      if (!std::isfinite(numbers[i + 1])) break;
      const float low = numbers[i], high = numbers[i + 1], middle = low + (high - low) / 2;
      const float even = i % 2 ? high : low;
      const std::vector<float> given{std::nextafter(middle, low), middle,
                                     std::nextafter(middle, high)};
      const auto stored = stored_as(tensor(given), type).to_vector<float>();
      EXPECT_EQ(stored, (std::vector<float>{low, even, high})) << type << " between " << low;
    }
  }
}

TEST(OnnxElementTypesTest, NumbersBeyondTheLargestSaturateOnRequest) {
  const Tensor x = tensor({1e6, -1e6, kInf, kNaN}, f32);
  expect_values(stored_as(x, ElementType::float8e4m3fn), {448, -448, 448, kNaN});
  expect_values(stored_as(x, ElementType::float8e4m3fn, {.saturates = false}),
                {kNaN, kNaN, kNaN, kNaN});
  expect_values(stored_as(x, ElementType::float8e5m2, {.saturates = false}),
                {kInf, -kInf, kInf, kNaN});
  expect_values(stored_as(x, ElementType::float8e5m2fnuz), {57344, -57344, 57344, kNaN});
  expect_values(stored_as(x, ElementType::float16), {kInf, -kInf, kInf, kNaN});
}

TEST(OnnxElementTypesTest, Float8e8m0HasPowersOfTwo) {
  const Tensor x = tensor({1., 3., 5., 6., 7.}, f32);
  const auto in_mode = [&](const char* mode) {
    return stored_as(x, ElementType::float8e8m0, {.round_mode = mode});
  };
  expect_values(in_mode("up"), {1, 4, 8, 8, 8});
  expect_values(in_mode("down"), {1, 2, 4, 4, 4});
  expect_values(in_mode("nearest"), {1, 4, 4, 8, 8});
  EXPECT_EQ(number_of_bits(127, ElementType::float8e8m0), 1);
  EXPECT_TRUE(std::isnan(number_of_bits(255, ElementType::float8e8m0)));
}

TEST(OnnxElementTypesTest, RoundingHasTheGradientOfItsInput) {
  for (const ElementType type : {ElementType::float16, ElementType::float8e4m3fn})
    expect_values(grad([&](const Tensor& x) { return sum(stored_as(x, type)); })(
                      tensor({0.3, 0.001, -2.7}, f32)),
                  {1, 1, 1});
}

TEST(OnnxElementTypesTest, IntegersOfFewBitsWrapAround) {
  const Tensor x = tensor({-9, -1, 7, 8, 16}, i32);
  expect_values(stored_as(x, ElementType::int4), {7, -1, 7, -8, 0});
  expect_values(stored_as(x, ElementType::uint4), {7, 15, 7, 8, 0});
  expect_values(stored_as(x, ElementType::int2), {-1, -1, -1, 0, 0});
  expect_values(imported::saturated(x, ElementType::int4), {-8, -1, 7, 7, 7});
  expect_values(imported::saturated(x, ElementType::uint2), {0, 0, 3, 3, 3});
}

/// Expects the elements of a tensor with `bytes` as raw data, and as int32 data.
void expect_packed(ElementType type, const std::string& bytes,
                   const std::vector<double>& expected) {
  TensorProto raw;
  raw.set_data_type(static_cast<int>(type));
  raw.add_dims(static_cast<std::int64_t>(expected.size()));
  TensorProto field = raw;
  raw.set_raw_data(bytes);
  for (const char byte : bytes) field.add_int32_data(static_cast<std::uint8_t>(byte));
  for (const TensorProto& proto : {raw, field})
    expect_values(imported::read_tensor(proto, {"test", ""}).tensor, expected);
}

TEST(OnnxElementTypesTest, PackedElementsBeginAtTheLowerBits) {
  expect_packed(ElementType::uint4, "\x21\x0f", {1, 2, 15});
  expect_packed(ElementType::int4, "\x2f\x08", {-1, 2, -8});
  expect_packed(ElementType::uint2, "\xe4\x01", {0, 1, 2, 3, 1});
  expect_packed(ElementType::int2, "\xe4", {0, 1, -2, -1});
  expect_packed(ElementType::float4e2m1, "\x72\x09", {1, 6, -0.5});
  expect_packed(ElementType::float8e4m3fn, "\x38\x7e\x7f", {1, 448, kNaN});
}

TEST(OnnxElementTypesTest, BytesThatDoNotFitTheSizesAreAnError) {
  TensorProto proto;
  proto.set_data_type(static_cast<int>(ElementType::uint4));
  proto.add_dims(3);
  proto.set_raw_data("\x21");
  EXPECT_EQ(message_of<OnnxError>([&] {
              imported::read_tensor(proto, {"test", ""});
            }),
            "tensor : has 1 bytes, but its sizes make 2");
}

}  // namespace
}  // namespace reel
