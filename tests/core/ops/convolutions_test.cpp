// conv, max_pool and mean_pool: numbers of plain loops, dims of results, ragged entries alone,
// transposed convolutions, errors.
#include "reel/core/functions/convolutions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/ops.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/frontend/transforms/vmap.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// One axis of a convolution, for the reference.
struct Along {
  std::int64_t size, taps, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t windows() const {
    std::int64_t count = 0;
    // A window begins at each stride-th position as long as it fits into the padded axis.
    for (std::int64_t at = 0; at + (taps - 1) * dilation < size + before + after; at += stride)
      ++count;
    return count;
  }
};

/// Returns the convolution of x [rows, sizes..., in] and f [taps..., in / groups, out] by loops.
std::vector<double> by_loops(const std::vector<double>& x, const std::vector<double>& f,
                             std::int64_t rows, const std::vector<Along>& axes, std::int64_t in,
                             std::int64_t out, std::int64_t groups = 1) {
  std::int64_t positions = 1, windows = 1, taps = 1;
  for (const Along& at : axes) {
    positions *= at.size;
    windows *= at.windows();
    taps *= at.taps;
  }
  const std::int64_t in_group = in / groups, out_group = out / groups;
  std::vector<double> y;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t window = 0; window < windows; ++window)
      for (std::int64_t m = 0; m < out; ++m) {
        double sum = 0;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          std::int64_t place = 0, step = 1, w = window, k = tap;
          bool is_inside = true;
          for (std::size_t i = axes.size(); i-- > 0;) {
            const Along& at = axes[i];
            const std::int64_t position =
                w % at.windows() * at.stride + k % at.taps * at.dilation - at.before;
            w /= at.windows();
            k /= at.taps;
            is_inside = is_inside && position >= 0 && position < at.size;
            place += position * step;
            step *= at.size;
          }
          if (!is_inside) continue;
          const std::int64_t first = m / out_group * in_group;
          for (std::int64_t c = 0; c < in_group; ++c)
            sum += x[static_cast<std::size_t>((row * positions + place) * in + first + c)] *
                   f[static_cast<std::size_t>((tap * in_group + c) * out + m)];
        }
        y.push_back(sum);
      }
  return y;
}

/// Returns the gradients of loss(x, f) with respect to both.
template <class Loss>
std::pair<Tensor, Tensor> grad_of_both(const Loss& loss, const Tensor& x, const Tensor& f) {
  return grad([&](const std::pair<Tensor, Tensor>& at) -> Tensor {
    return loss(at.first, at.second);
  })(std::pair{x, f});
}

struct Case {
  std::int64_t rows;
  std::vector<Along> axes;
  std::int64_t in, out, groups = 1;
};

const Case kCases[] = {
    {2, {{7, 3}}, 3, 4},
    {2, {{300, 5}}, 8, 96},
    {1, {{70, 5, 2, 1, 2, 2}}, 64, 80},
    {3, {{9, 3, 2, 2, 1, 4}}, 2, 5},
    {2, {{50, 40, 16, 1, 12, 12}}, 1, 6},
    {2, {{5, 4, 1, 1, 3, 0}}, 16, 16, 16},
    {2, {{600, 4, 1, 1, 3, 0}}, 24, 24, 24},
    {2, {{12, 3, 2, 3, 2, 1}}, 12, 6, 3},
    {2, {{5, 3, 1, 1, 1, 1}, {6, 2, 2}}, 3, 4},
    {2, {{5, 3, 2, 1, 1, 1}, {6, 2, 1, 2, 0, 1}}, 9, 9, 9},
    {1, {{3, 2}, {4, 2, 2, 1, 1, 1}, {5, 3, 1, 1, 1, 1}}, 2, 3},
    {2, {{2, 4}}, 3, 4},
    {1, {{260, 3, 1, 1, 1, 1}}, 130, 130},
    // One tap, as a product of positions unless there is a stride or padding.
    {2, {{40, 1}, {13, 1}}, 30, 66},
    {3, {{11, 1}}, 12, 6, 3},
    {2, {{9, 1, 2}}, 3, 4},
    {2, {{9, 1, 1, 1, 1, 1}, {4, 1}}, 3, 4},
    // A large filter for few windows, and short runs of a first layer.
    {1, {{5, 3}}, 96, 130},
    {2, {{6, 3, 1, 1, 1, 1}, {9, 3, 1, 1, 1, 1}}, 1, 24},
    {1, {{6, 2}, {9, 5, 2, 1, 2, 2}}, 7, 8},
};

Convolution options_of(const Case& c) {
  std::vector<std::int64_t> stride, dilation;
  std::vector<WindowPadding> padding;
  for (const Along& at : c.axes) {
    stride.push_back(at.stride);
    dilation.push_back(at.dilation);
    padding.push_back({at.before, at.after});
  }
  return {.stride = stride, .dilation = dilation, .groups = c.groups, .padding = padding};
}
Axes spatial_of(const Case& c) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < c.axes.size(); ++i) axes.emplace_back(static_cast<int>(i) + 1);
  return axes;
}

TEST(ConvTest, HasTheNumbersOfPlainLoops) {
  manual_seed(1);
  for (const Case& c : kCases)
    for (const DType dtype : {f32, f64, i32, i64}) {
      Dims x_dims{c.rows}, f_dims;
      for (const Along& at : c.axes) {
        x_dims.emplace_back(at.size);
        f_dims.emplace_back(at.taps);
      }
      x_dims.emplace_back(c.in);
      f_dims.emplace_back(c.in / c.groups);
      f_dims.emplace_back(c.out);
      const Tensor x = cast(round(random_uniform(x_dims, -4, 4, f64)), dtype),
                   f = cast(round(random_uniform(f_dims, -4, 4, f64)), dtype);
      const Tensor y = conv(x, f, spatial_of(c), options_of(c));
      Dims dims{c.rows};
      for (const Along& at : c.axes) dims.emplace_back(at.windows());
      dims.emplace_back(c.out);
      EXPECT_EQ(y.type(), TensorType(dtype, dims));
      const auto expected =
          by_loops(values_of(x), values_of(f), c.rows, c.axes, c.in, c.out, c.groups);
      EXPECT_EQ(values_of(y), expected) << x.type() << ", " << f.type() << ", groups " << c.groups;
    }
}

/// The numbers are integers, so that the sums are exact in any order.
TEST(ConvTest, GradientsAreTheTransposedMaps) {
  manual_seed(2);
  for (const Case& c : kCases)
    for (const DType dtype : {f32, f64}) {
      Dims x_dims{c.rows}, f_dims;
      for (const Along& at : c.axes) {
        x_dims.emplace_back(at.size);
        f_dims.emplace_back(at.taps);
      }
      x_dims.emplace_back(c.in);
      f_dims.emplace_back(c.in / c.groups);
      f_dims.emplace_back(c.out);
      const auto draw = [&](const Dims& dims) {
        return cast(round(random_uniform(dims, -4, 4, f64)), dtype);
      };
      const Tensor x = draw(x_dims), f = draw(f_dims), x2 = draw(x_dims), f2 = draw(f_dims);
      const Tensor y = conv(x, f, spatial_of(c), options_of(c)), w = draw(y.dims());
      const auto loss = [&](const Tensor& x, const Tensor& f) -> Tensor {
        return sum(cast(conv(x, f, spatial_of(c), options_of(c)) * w, f64));
      };
      const auto [gx, gf] = grad_of_both(loss, x, f);
      // <w, conv(x2, f)> = <gx, x2>, and the same for f.
      const auto inner = [](const Tensor& a, const Tensor& b) {
        return sum(cast(a, f64) * cast(b, f64)).item<double>();
      };
      EXPECT_EQ(inner(gx, x2), loss(x2, f).item<double>()) << x.type() << f.type();
      EXPECT_EQ(inner(gf, f2), loss(x, f2).item<double>()) << x.type() << f.type();
    }
}

TEST(ConvTest, DimsAreMatchedByName) {
  manual_seed(3);
  const Dim batch("batch", 2), time("time", 6), in("in", 3), out("out", 4), taps("taps", 3);
  const Tensor x = random_normal({batch, time, in}, f64), f = random_normal({taps, in, out}, f64);
  const Convolution same{.taps = {taps}, .in = {in}, .padding = WindowPadding::same};
  const Tensor y = conv(x, f, time, same);
  EXPECT_EQ(y.type(), TensorType(f64, {batch, time, out}));
  const Tensor plain =
      conv(reshape(x, {2, 6, 3}), reshape(f, {3, 3, 4}), 1, {.padding = WindowPadding{1, 1}});
  expect_same_bits(reshape(y, {2, 6, 4}), plain);
  // Any order of axes.
  const Tensor turned =
      conv(transpose(x, {in, time, batch}), transpose(f, {out, taps, in}), time, same);
  EXPECT_EQ(turned.dims(), (Dims{time, batch, out}));
  expect_same_bits(transpose(turned, {batch, time, out}), y);
  // Depthwise: a dim of both.
  const Tensor d = random_normal({taps, in}, f64);
  const Tensor z = conv(x, d, time, {.taps = {taps}, .padding = WindowPadding::causal});
  EXPECT_EQ(z.type(), TensorType(f64, {batch, time, in}));
  expect_same_bits(reshape(z, {2, 6, 3}), conv(reshape(x, {2, 6, 3}), reshape(d, {3, 1, 3}), 1,
                                               {.groups = 3, .padding = WindowPadding{2, 0}}));
}

TEST(ConvTest, GroupsHaveTheDimOfAGroup) {
  manual_seed(4);
  const Dim batch("batch", 2), time("time", 6), in("in", 6), out("out", 4), taps("taps", 3);
  const Tensor x = random_normal({batch, time, in}, f64),
               f = random_normal({taps, in / 2, out}, f64);
  const Tensor y = conv(x, f, time, {.taps = {taps}, .in = {in}, .groups = 2});
  EXPECT_EQ(y.dims(), (Dims{batch, time - 2, out}));
  expect_same_bits(reshape(y, {2, 4, 4}),
                   conv(reshape(x, {2, 6, 6}), reshape(f, {3, 3, 4}), 1, {.groups = 2}));
}

TEST(ConvTest, EqualCallsGiveOneDim) {
  const Dim batch("batch", 2), time("time", tensor({7, 4}, {batch})), in("in", 1), out("out", 1),
      taps("taps", 3);
  const Tensor x = ones({batch, time, in}), f = ones({taps, in, out});
  const auto dim_of = [&](Convolution options) {
    options.taps = {taps};
    options.in = {in};
    return conv(x, f, time, options).dims()[1];
  };
  EXPECT_EQ(dim_of({.padding = WindowPadding::same}), time);
  EXPECT_EQ(dim_of({.padding = WindowPadding::causal}), time);
  EXPECT_EQ(dim_of({.padding = WindowPadding{2, 0}}), time);
  EXPECT_EQ(dim_of({}), time - 2);
  EXPECT_EQ(dim_of({.stride = 2}), ceildiv(time - 2, 2));
  EXPECT_EQ(dim_of({.stride = 2, .padding = WindowPadding::same}), ceildiv(time, 2));
  EXPECT_EQ(dim_of({.stride = 2, .padding = WindowPadding::causal}), ceildiv(time, 2));
  EXPECT_EQ(dim_of({.stride = 3, .padding = WindowPadding{4, 3}}), ceildiv(time + 5, 3));
  EXPECT_EQ(dim_of({.dilation = 2}), time - 4);
  EXPECT_EQ(values_of(dim_of({.dilation = 2}).lengths()), (std::vector<double>{3, 0}));
  const Dim named = dim_of({.stride = 2, .to = {Dim("frame")}});
  EXPECT_EQ(named.name(), "frame");
  EXPECT_EQ(values_of(named.lengths()), (std::vector<double>{3, 1}));
}

TEST(ConvTest, EachEntryHasTheValuesThatItHasAlone) {
  manual_seed(5);
  const Dim batch("batch", 4), in("in", 3), out("out", 4), taps("taps", 3);
  const std::vector<std::int64_t> lengths{9, 5, 0, 2};
  const Dim time("time", tensor({9, 5, 0, 2}, {batch}));
  const Tensor x = where(mask(time), random_normal({batch, time, in}, f64), scalar(kNan, f64));
  const Tensor f = random_normal({taps, in, out}, f64), d = random_normal({taps, in}, f64);
  for (const std::int64_t stride : {1, 2, 4})
    for (const std::int64_t dilation : {1, 2})
      for (const WindowPadding& padding :
           {WindowPadding::same, WindowPadding::valid, WindowPadding::causal, WindowPadding{3, 0},
            WindowPadding{0, 5}})
        for (const bool is_depthwise : {false, true}) {
          const Convolution options{.taps = {taps},
                                    .in = is_depthwise ? Dims{} : Dims{in},
                                    .stride = stride,
                                    .dilation = dilation,
                                    .padding = padding};
          const Tensor& filter = is_depthwise ? d : f;
          const auto run = [&](const Tensor& x, const Tensor& filter, const Dim& over) {
            return conv(x, filter, over, options);
          };
          const auto loss = [&](const Dim& over) {
            return [&, over](const Tensor& x, const Tensor& filter) -> Tensor {
              return sum(square(run(x, filter, over)));
            };
          };
          const Tensor y = run(x, filter, time);
          const Dim to = y.dims()[1];
          const auto [gx, gf] = grad_of_both(loss(time), x, filter);
          Tensor sum_gf = zeros(filter.dims(), f64);
          for (std::size_t b = 0; b < lengths.size(); ++b) {
            const int at = static_cast<int>(b);
            const Dim own("own", lengths[b]);
            const auto entry = [&](const Tensor& t, const Dim& dim, std::int64_t size,
                                   const Dim& to) {
              return slice(gather(t, scalar(at, i32), batch), dim, 0, size, to);
            };
            const Tensor alone = entry(x, time, lengths[b], own);
            const Tensor expected = run(alone, filter, own);
            const std::int64_t size = expected.dims()[0].size();
            EXPECT_EQ(values_of(to.lengths())[b], static_cast<double>(size));
            expect_all_close(entry(y, to, size, expected.dims()[0]), expected, 1e-12);
            const auto [gx_alone, gf_alone] = grad_of_both(loss(own), alone, filter);
            expect_all_close(entry(gx, time, lengths[b], own), gx_alone, 1e-11);
            sum_gf = sum_gf + gf_alone;
          }
          expect_all_close(gf, sum_gf, 1e-11);
        }
}

TEST(ConvTest, TransposedRestoresADim) {
  manual_seed(6);
  const Dim batch("batch", 2), time("time", tensor({7, 4}, {batch})), in("in", 3), out("out", 4),
      taps("taps", 3);
  const Tensor x = random_normal({batch, time, in}, f64), f = random_normal({taps, in, out}, f64);
  const Convolution options{
      .taps = {taps}, .in = {in}, .stride = 2, .padding = WindowPadding::same};
  const Tensor y = conv(x, f, time, options);
  const Dim half = y.dims()[1];
  // <conv(x), w> = <x, transposed(w)>
  const Tensor w = random_normal({batch, half, out}, f64);
  Convolution back = options;
  back.in = {out};
  back.transposed = true;
  back.to = {time};
  const Tensor restored = conv(w, f, half, back);
  EXPECT_EQ(restored.type(), TensorType(f64, {batch, time, in}));
  expect_all_close(sum(restored * x), sum(y * w), 1e-12);
  back.to = {};
  EXPECT_EQ(conv(w, f, half, back).dims()[1], half * 2);
  back.padding = WindowPadding{1, 0};
  EXPECT_EQ(conv(w, f, half, back).dims()[1], half * 2);
  back.padding = WindowPadding::valid;
  EXPECT_EQ(conv(w, f, half, back).dims()[1], half * 2 + 1);
  // Plain: PyTorch's sizes, (size - 1) · stride + reach - padding.
  const Tensor plain = conv(ones({2, 5, 4}), ones({3, 4, 2}), 1,
                            {.stride = 2, .padding = WindowPadding{1, 1}, .transposed = true});
  EXPECT_EQ(plain.shape(), (std::vector<std::int64_t>{2, 9, 2}));
  expect_values(slice(plain, 0, 0, 1), {4, 4, 8, 8, 4, 4, 8, 8, 4, 4, 8, 8, 4, 4, 8, 8, 4, 4}, 0);
}

TEST(ConvTest, VmapOfAFilterIsAConvolutionForEachRow) {
  manual_seed(7);
  const Tensor x = random_normal({3, 2, 6, 2}, f64), f = random_normal({3, 3, 2, 4}, f64);
  const auto one = [](const Tensor& x, const Tensor& f) { return conv(x, f, 1); };
  const Tensor all = vmap(one)(x, f);
  for (int i = 0; i < 3; ++i)
    expect_all_close(gather(all, scalar(i, i32), 0),
                     one(gather(x, scalar(i, i32), 0), gather(f, scalar(i, i32), 0)), 1e-12);
}

TEST(ConvTest, LongSumsOfTheFilterAreExact) {
  // 2^24 + 64 terms of 1 would stay at 2^24 in a single chain of f32.
  constexpr std::int64_t kTerms = (std::int64_t{1} << 24) + 64;
  const auto loss = [](const Tensor& f, const Tensor& x) { return sum(conv(x, f, 0)); };
  const Tensor g = grad(loss)(ones({1, 1, 1}), ones({kTerms, 1}));
  EXPECT_EQ(g.item<float>(), static_cast<float>(kTerms));
}

// ---- Pools --------------------------------------------------------------------------------------

TEST(PoolTest, HasTheNumbersOfPlainLoops) {
  manual_seed(8);
  const Case cases[] = {{2, {{7, 3, 2}}, 4, 4},
                        {3, {{5, 2, 1, 2, 1, 1}}, 1, 1},
                        {2, {{4, 3, 2, 1, 1, 1}, {5, 2, 2, 1, 0, 1}}, 3, 3},
                        {2, {{2, 2, 2, 1, 3, 3}}, 2, 2}};
  for (const Case& c : cases) {
    Dims dims{c.rows};
    Pooling options{.size = 1};
    std::vector<std::int64_t> size;
    for (const Along& at : c.axes) {
      dims.emplace_back(at.size);
      size.push_back(at.taps);
    }
    dims.emplace_back(c.in);
    const Convolution like = options_of(c);
    options = {
        .size = size, .stride = like.stride, .dilation = like.dilation, .padding = like.padding};
    const Tensor x = random_normal(dims, f64);
    const std::vector<double> values = values_of(x), ones(values.size(), 1.0);
    // A filter of ones for each channel sums windows, and counts elements of ones.
    std::int64_t taps = c.in;
    for (const Along& at : c.axes) taps *= at.taps;
    const std::vector<double> filter(static_cast<std::size_t>(taps), 1.0);
    auto sums = by_loops(values, filter, c.rows, c.axes, c.in, c.in, c.in),
         counts = by_loops(ones, filter, c.rows, c.axes, c.in, c.in, c.in);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= std::max(counts[i], 1.0);
    expect_values(mean_pool(x, spatial_of(c), options), sums, 1e-14);
    // x moved by -m is at most 0, so that no sum of powers overflows: max is a limit of p-norms.
    const Tensor largest = max_pool(x, spatial_of(c), options);
    const auto above =
        by_loops(values_of(exp(200.0 * x)), filter, c.rows, c.axes, c.in, c.in, c.in);
    const std::vector<double> got = values_of(largest);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (counts[i] == 0)
        EXPECT_EQ(got[i], -std::numeric_limits<double>::infinity());
      else
        EXPECT_NEAR(got[i], std::log(above[i]) / 200, 0.02);
    }
  }
}

TEST(PoolTest, EntriesAreAsAlone) {
  const Dim batch("batch", 3), time("time", tensor({5, 2, 0}, {batch}));
  const Tensor x =
      where(mask(time),
            tensor({{-5., -2., -3., -4., -1.}, {-2., -7., 0., 0., 0.}, {0., 0., 0., 0., 0.}},
                   {batch, time}, f64),
            scalar(kNan, f64));
  const Pooling options{.size = 3, .stride = 2, .padding = WindowPadding::same};
  const Tensor largest = max_pool(x, time, options), mean = mean_pool(x, time, options);
  const Dim half = ceildiv(time, 2);
  EXPECT_EQ(largest.dims(), (Dims{batch, half}));
  expect_values(mask_padding(largest), {-2, -2, -1, -2, 0, 0, 0, 0, 0}, 0);
  expect_values(mask_padding(mean), {-3.5, -3, -2.5, -4.5, 0, 0, 0, 0, 0}, 1e-15);
  const Tensor g = grad([&](const Tensor& x) { return sum(max_pool(x, time, options)); })(x);
  expect_values(mask_padding(g), {0, 2, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0);
  // A window without elements: max over no elements, and mean 0.
  const Pooling wide{.size = 2, .padding = WindowPadding{2, 2}};
  EXPECT_EQ(values_of(max_pool(x, time, wide))[0], -std::numeric_limits<double>::infinity());
  EXPECT_EQ(values_of(mean_pool(x, time, wide))[0], 0);
}

TEST(PoolTest, TheFirstOfEqualElementsHasTheGradient) {
  const Tensor x = tensor({1.f, 3.f, 3.f, 3.f});
  const Tensor g = grad([](const Tensor& x) { return sum(max_pool(x, 0, {.size = 2})); })(x);
  expect_values(g, {0, 1, 1, 0}, 0);
  expect_values(max_pool(tensor({1, 4, 2, -8}), 0, {.size = 2}), {4, 2}, 0);
  EXPECT_TRUE(std::isnan(values_of(max_pool(tensor({1., kNan, 2.}), 0, {.size = 3}))[0]));
}

TEST(PoolTest, PaddingCountsOnRequest) {
  expect_values(
      mean_pool(tensor({3.f, 3.f, 3.f}), 0,
                {.size = 3, .stride = 1, .padding = WindowPadding::same, .counts_padding = true}),
      {2, 3, 2}, 1e-6);
}

// ---- Errors -------------------------------------------------------------------------------------

TEST(ConvTest, ErrorsNameTheRepair) {
  const Dim batch("batch", 2), time("time", 6), in("in", 3), out("out", 4), taps("taps", 3);
  const Tensor x = ones({batch, time, in}), f = ones({taps, in, out});
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        return conv(ones({2, 6, 3}), f, 1);
      }),
      "conv: named and plain dims meet: x f32[2,6,3], filter f32[taps=3,in=3,out=4]; name the "
      "dims of both, as in reshape(x, {dim, ...})");
  EXPECT_EQ(
      message_of<ArgumentError>([&] { return conv(x, f, time, {.in = {in}}); }),
      "conv: the option taps has 0 dims of the filter f32[taps=3,in=3,out=4], but windows run "
      "over 1 axis of x f32[batch=2,time=6,in=3]; give a dim of the filter for each: {.taps = "
      "{taps}, .in = {in}}");
  EXPECT_EQ(message_of<ShapeError>([&] { return conv(x, f, time, {.taps = {taps}, .in = {out}}); }),
            "conv: x f32[batch=2,time=6,in=3] has no dim out=4, which in names");
  EXPECT_EQ(message_of<ShapeError>(
                [&] { return conv(x, f, time, {.taps = {taps}, .in = {in}, .groups = 3}); }),
            "conv: filter f32[taps=3,in=3,out=4] has no dim in/3=1, the channels of one of 3 "
            "groups; make it with {taps, in / 3, out}, where in is in=3");
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { return conv(x, f, time, {.taps = {taps}, .in = {in}, .stride = 0}); }),
            "conv: stride 0; it must be positive");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return conv(x, f, time, {.taps = {taps}, .in = {in}, .stride = {1, 2}});
            }),
            "conv: stride has 2 values for 1 axis; give one value, or one for each");
  EXPECT_EQ(
      message_of<ArgumentError>([&] {
        return conv(x, f, time, {.taps = {taps}, .in = {in}, .padding = WindowPadding{-1, 0}});
      }),
      "conv: padding of -1 and 0 elements; it must not be negative");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return conv(ones({6, 3}), ones({3, 2, 4}), 0);
            }),
            "conv: inner dims differ: x f32[6,3] has 3, filter f32[3,2,4] has 2");
  EXPECT_EQ(message_of<DTypeError>([&] {
              return conv(ones({6, 3}, f64), ones({3, 3, 4}), 0);
            }),
            "conv: dtypes differ: x f64[6,3], filter f32[3,3,4]; cast one of them");
  EXPECT_EQ(message_of<ArgumentError>([&] { return max_pool(x, Dims{}, {.size = 2}); }),
            "max_pool: windows run over one to three axes, got 0");
  const Dim words("words", tensor({2, 1}, {batch})),
      letters("letters", tensor({{3, 2}, {4, 0}}, {batch, words}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              return max_pool(ones({batch, words, letters}), words, {.size = 2});
            }).substr(0, 62),
            "max_pool: lengths of another dim of f32[batch=2,words[batch=2]");
}

}  // namespace
}  // namespace reel
