// Layers of convolutions: Conv, DepthwiseConv, and CausalConv as a layer and as a cell.
#include <limits>

#include "reel/core/functions/convolutions.h"
#include "reel/frontend/layers/causal_conv.h"
#include "reel/frontend/layers/conv.h"
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

class ConvLayerTest : public InEveryMode {};
REEL_IN_EVERY_MODE(ConvLayerTest);

TEST_P(ConvLayerTest, IsAConvolutionAndABias) {
  manual_seed(1);
  const Dim batch("batch", 2), time("time", tensor({5, 3}, {batch})), in("in", 4), out("out", 6);
  Conv layer = Conv::init({3}, in, out,
                          {.stride = 2, .groups = 2, .padding = WindowPadding::same, .dtype = f64});
  layer.bias = random_normal({out}, f64);
  const Tensor x = random_normal({batch, time, in}, f64);
  const Tensor y =
      run([&](const Conv& layer, const Tensor& x) { return layer(x, time); })(layer, x);
  EXPECT_EQ(y.dims(), (Dims{batch, ceildiv(time, 2), out}));
  const Tensor expected = conv(x, layer.filter, time,
                               {.taps = layer.taps,
                                .in = {in},
                                .stride = 2,
                                .groups = 2,
                                .padding = WindowPadding::same}) +
                          *layer.bias;
  expect_all_close(mask_padding(y), mask_padding(expected), 1e-14);
}

TEST_P(ConvLayerTest, KeepsADimOfEqualChannels) {
  manual_seed(2);
  const Dim batch("batch", 2), height("height", 4), width("width", 5), channel("channel", 3);
  const Conv layer =
      Conv::init({3, 3}, channel, channel, {.padding = WindowPadding::same, .dtype = f64});
  const Tensor x = random_normal({batch, height, width, channel}, f64);
  const Tensor y = run([&](const Conv& layer, const Tensor& x) {
    return layer(x, {height, width});
  })(layer, x);
  EXPECT_EQ(y.type(), x.type());
}

/// The loss of all layers below is over ragged time, with NaN in the padding.
TEST_P(ConvLayerTest, GradientsIgnorePadding) {
  manual_seed(3);
  const Dim batch("batch", 3), time("time", tensor({5, 0, 2}, {batch})), in("in", 3), out("out", 2);
  const Tensor x = where(mask(time), random_normal({batch, time, in}, f64), scalar(kNan, f64));
  const Conv layer =
      Conv::init({3}, in, out, {.stride = 2, .padding = WindowPadding::same, .dtype = f64});
  const auto loss = [&](const Conv& layer) { return mean(square(layer(x, time))); };
  expect_gradient_of(loss, layer, run(grad(loss))(layer));
  const DepthwiseConv depthwise =
      DepthwiseConv::init({3}, in, {.padding = WindowPadding{1, 2}, .dtype = f64});
  const auto loss_of_depthwise = [&](const DepthwiseConv& layer) {
    return mean(square(layer(x, time)));
  };
  expect_gradient_of(loss_of_depthwise, depthwise, run(grad(loss_of_depthwise))(depthwise));
}

TEST_P(ConvLayerTest, TransposedRestoresTheTime) {
  manual_seed(4);
  const Dim batch("batch", 2), time("time", tensor({5, 2}, {batch})), in("in", 3), out("out", 2);
  const Conv down =
      Conv::init({3}, in, out, {.stride = 2, .padding = WindowPadding::same, .dtype = f64});
  const Conv up =
      Conv::init({3}, out, in,
                 {.stride = 2, .padding = WindowPadding::same, .transposed = true, .dtype = f64});
  const Tensor x = random_normal({batch, time, in}, f64);
  const Tensor y = run([&](const Conv& down, const Conv& up, const Tensor& x) {
    const Tensor less = down(x, time);
    return up(less, less.dims()[1], {time});
  })(down, up, x);
  EXPECT_EQ(y.type(), x.type());
}

class CausalConvTest : public InEveryMode {};
REEL_IN_EVERY_MODE(CausalConvTest);

TEST_P(CausalConvTest, StepsGiveTheNumbersOfTheWholeSequence) {
  manual_seed(5);
  const Dim batch("batch", 3), time("time", tensor({6, 2, 0}, {batch})), in("in", 3), out("out", 2);
  const Tensor x = where(mask(time), random_normal({batch, time, in}, f64), scalar(kNan, f64));
  for (const bool is_depthwise : {false, true})
    for (const std::int64_t dilation : {1, 2}) {
      const CausalConv layer =
          is_depthwise ? CausalConv::depthwise(4, in, {.dilation = dilation, .dtype = f64})
                       : CausalConv::init(3, in, out, {.dilation = dilation, .dtype = f64});
      const Tensor whole =
          run([&](const CausalConv& layer, const Tensor& x) { return layer(x, time); })(layer, x);
      EXPECT_EQ(whole.dims(), (Dims{batch, time, layer.out}));
      const auto recurred = run([&](const CausalConv& layer, const Tensor& x) {
        const auto made = recur(layer, x, time);
        return std::pair{transpose(made.outputs, {batch, time, layer.out}), made.state};
      })(layer, x);
      expect_all_close(mask_padding(recurred.first), mask_padding(whole), 1e-14);
      const auto part = run([&](const CausalConv& layer, const Tensor& x) {
        return layer(x, time, layer.initial_state({batch}));
      })(layer, x);
      EXPECT_EQ(part.first.dims(), (Dims{batch, time, layer.out}));
      expect_all_close(mask_padding(part.first), mask_padding(whole), 1e-14);
      expect_all_close(part.second, recurred.second, 1e-14);
      const auto loss = [&](const CausalConv& layer) { return mean(square(layer(x, time))); };
      const auto loss_of_steps = [&](const CausalConv& layer) {
        return mean(square(recur(layer, x, time).outputs));
      };
      const CausalConv gradient = run(grad(loss))(layer);
      expect_gradient_of(loss, layer, gradient);
      expect_all_close(run(grad(loss_of_steps))(layer).filter, gradient.filter, 1e-12);
    }
}

TEST_P(CausalConvTest, WindowsOfASequenceContinueEachOther) {
  manual_seed(6);
  const Dim batch("batch", 2), time("time", 7), first("first", 3), rest("rest", 4), in("in", 2);
  const CausalConv layer = CausalConv::init(4, in, in, {.dtype = f64});
  const Tensor x = random_normal({batch, time, in}, f64);
  const Tensor whole = layer(x, time);
  const auto [y, last] = run([&](const CausalConv& layer, const Tensor& x) {
    const auto [a, state] = layer(slice(x, time, 0, 3, first), first, layer.initial_state({batch}));
    const auto [b, last] = layer(slice(x, time, 3, 7, rest), rest, state);
    return std::pair{concat({a, b}, first, time), last};
  })(layer, x);
  expect_all_close(y, whole, 1e-14);
  expect_same_bits(last, slice(x, time, -3, {}, layer.past));
}

TEST(ConvLayerErrorsTest, NameTheLayer) {
  const Dim in("in", 3), out("out", 4);
  EXPECT_EQ(message_of<ArgumentError>([&] { return Conv::init({3}, in, out, {.groups = 2}); }),
            "Conv: 2 groups do not divide in in=3 and out out=4");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Conv::init({}, in, out); }),
            "Conv: taps along one to three axes, got 0");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Conv::init({0}, in, out); }),
            "Conv: taps must be positive, got 0");
  EXPECT_EQ(message_of<ArgumentError>([&] { return CausalConv::init(0, in, out); }),
            "CausalConv: taps 0 and dilation 1 must be positive");
}

}  // namespace
}  // namespace reel
