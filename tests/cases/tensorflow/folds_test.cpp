// map, foldl, foldr and products by scan, with and without an initial value.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowFolds = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowFolds);

const std::vector<double> kOneToSix{1, 2, 3, 4, 5, 6};
Tensor one_to_six(DType dtype = i32) { return tensor(kOneToSix, {}, dtype); }

TEST_P(TensorFlowFolds, V25_MapAppliesTheBodyToEachElement) {
  const auto simple = [](const Tensor& x) { return (x + 3) * 2; };
  expect_values(run([=](const Tensor& x) { return map(simple, x); })(one_to_six()),
                {8, 10, 12, 14, 16, 18});
  using Two = std::pair<Tensor, Tensor>;
  const auto two = run([](const Tensor& x) {
    return map([](const Two& x) { return x.first * x.second - x.first; }, Two{x, x});
  });
  expect_values(two(one_to_six()), {0, 2, 6, 12, 20, 30});
}

TEST_P(TensorFlowFolds, V26_FoldlAndFoldr) {
  const auto step = [](const Tensor& a, const Tensor& x) { return (a + x) * 2; };
  const auto x = one_to_six();
  expect_values(run([=](const Tensor& x) { return foldl(step, x); })(x), {208});
  expect_values(run([=](const Tensor& x) { return foldl(step, x, 10); })(x), {880});
  expect_values(run([=](const Tensor& x) { return foldr(step, x); })(x), {450});
  expect_values(run([=](const Tensor& x) { return foldr(step, x, 10); })(x), {1282});
}

/// tf.scan: the accumulator after each element. Without an initial value, it starts with the first
/// element.
Tensor products(const Tensor& x, const std::optional<Tensor>& initial, bool backwards) {
  return scan(Scan{.initial = initial ? *initial : scalar(1, x.dtype()),
                   .xs = x,
                   .body =
                       [](const Tensor& x, const Tensor& a) {
                         return std::pair{a * x, a * x};
                       },
                   .reverse = backwards})
      .ys;
}

TEST_P(TensorFlowFolds, V27_ScanOfProducts) {
  const auto scanned = [&](std::optional<Tensor> initial, bool backwards) {
    return run([=](const Tensor& x) { return products(x, initial, backwards); })(one_to_six());
  };
  expect_values(scanned({}, false), {1, 2, 6, 24, 120, 720});
  expect_values(scanned(scalar(2), false), {2, 4, 12, 48, 240, 1440});
  expect_values(scanned({}, true), {720, 720, 360, 120, 30, 6});
  expect_values(scanned(scalar(2), true), {1440, 1440, 720, 240, 60, 12});
}

TEST_P(TensorFlowFolds, G40_GradientsOfFoldScanAndMap) {
  const auto x = one_to_six(f64), v = scalar(2.0, f64);
  const auto times = [](const Tensor& a, const Tensor& x) { return a * x; };
  const auto fold = [=](const Tensor& v) { return foldl(times, x, v); };
  expect_values(run(grad(fold))(v), {720});
  expect_values(run(grad([=](const Tensor& v) { return foldr(times, x, v); }))(v), {720});
  const auto scanned = [=](const Tensor& v) { return sum(products(x, v, false)); };
  expect_values(run(grad(scanned))(v), {873});
  using Two = std::pair<Tensor, Tensor>;
  const auto mapped = [](const Two& p) {
    return sum(map([&](const Tensor& x) { return square(x) * p.first; }, p.second));
  };
  const auto [param, elems] = run(grad(mapped))(Two{v, x});
  expect_values(param, {91});
  expect_values(elems, {4, 8, 12, 16, 20, 24});
  // Without an initial value, the gradient reaches every element, the first one included.
  for (const bool backwards : {false, true}) {
    const auto product = [=](const Tensor& x) {
      return backwards ? foldr(times, x) : foldl(times, x);
    };
    expect_values(run(grad(product))(x), {720, 360, 240, 180, 144, 120});
    const auto second = [=](const Tensor& x) { return sum(square(grad(product)(x))); };
    expect_gradient_of(second, x, run(grad(second))(x), 1e-4);
  }
}

TEST_P(TensorFlowFolds, Z05_LoopsOverNoElementsGiveEmptyResults) {
  const auto scanned = run([](const Tensor& x) {
    return scan(Scan{.initial = ones({2, 4}),
                     .xs = x,
                     .body =
                         [](const Tensor& x, const Tensor& a) {
                           return std::pair{a + cast(x, f32), a + cast(x, f32)};
                         }})
        .ys;
  });
  EXPECT_EQ(str(scanned(range(0)).type()), "f32[0,2,4]");
  const auto mapped = run([](const Tensor& x) {
    return map([](const Tensor&) { return zeros({3, 2}); }, x);
  });
  EXPECT_EQ(str(mapped(zeros({0})).type()), "f32[0,3,2]");
  const auto initial = run([](const Tensor& x) {
    return foldl([](const Tensor& a, const Tensor& x) { return a + x; }, x, 7.0);
  });
  expect_values(initial(zeros({0})), {7});
  const auto none = run([](const Tensor& x) {
    return foldl([](const Tensor& a, const Tensor& x) { return a + x; }, x);
  });
  EXPECT_EQ(message_of<ArgumentError>([&] { none(zeros({0})); }),
            "foldl \"foldl\": xs have no elements to start from; give an initial value");
  const auto of_scalar = run([](const Tensor& x) {
    return map([](const Tensor& x) { return x; }, x, {.name = "squares"});
  });
  EXPECT_EQ(message_of<ShapeError>([&] { of_scalar(scalar(1.0)); }),
            "map \"squares\": these xs cannot be scanned along their first axis\n  xs: f32[], a "
            "scalar: it has no axis to scan\nGive spatial_dim, a dim that all of them have; values "
            "that are the same in every iteration can be captured.");
}

struct Sample {
  Tensor x;
  std::optional<Tensor> weight;
};

TEST_P(TensorFlowFolds, TreesOfRaggedXs) {
  const double nan = std::nan("");
  const Dim batch("batch", 3), time("time", tensor({3, 0, 1}, {batch}));
  const Sample samples{tensor({1., 2., 3., nan, nan, nan, 4., nan, nan}, {batch, time}),
                       tensor({2., 3., 4.}, {time})};
  const auto weighted = [](const Sample& s) { return s.x * *s.weight + 1.0; };
  const auto mapped =
      run([=](const Sample& s) { return map(weighted, s, {.spatial_dim = s.x.dim("time")}); });
  const Tensor ys = mapped(samples);
  EXPECT_EQ(str(ys.type()), "f32[time[batch=3],batch=3]");
  expect_values(ys, {3, 0, 9, 7, 0, 0, 13, 0, 0});

  const auto digits = [](const Tensor& a, const Tensor& x) { return a * 10.0 + x; };
  const auto along = [](const Tensor& x) { return FoldOptions{.spatial_dim = x.dim("time")}; };
  expect_values(run([=](const Tensor& x) { return foldl(digits, x, along(x)); })(samples.x),
                {123, 0, 4});
  expect_values(run([=](const Tensor& x) { return foldr(digits, x, along(x)); })(samples.x),
                {321, 0, 4});
  const auto from = [](const Tensor& x) { return full({x.dim("batch")}, 5.0); };
  expect_values(
      run([=](const Tensor& x) { return foldl(digits, x, from(x), along(x)); })(samples.x),
      {5123, 5, 54});
  expect_values(
      run([=](const Tensor& x) { return foldr(digits, x, from(x), along(x)); })(samples.x),
      {5321, 5, 54});
  // A tree as the state; gradients ignore padding.
  const auto loss = [=](const Sample& s) {
    const auto dim = s.x.dim("time");
    const Sample last = foldl(
        [](const Sample& a, const Sample& s) {
          return Sample{a.x * s.x, *a.weight + *s.weight};
        },
        s, {.spatial_dim = dim});
    return sum(last.x) * 10.0 + sum(*last.weight);
  };
  expect_values(run(loss)(samples), {109});
  const Sample g = run(grad(loss))(samples);
  expect_values(mask_padding(g.x), {60, 30, 20, 0, 0, 0, 10, 0, 0});
  expect_values(*g.weight, {1, 1, 1});
}

TEST_P(TensorFlowFolds, FoldOfOneElementIsThatElement) {
  int calls = 0;
  const auto f = run([&](const Tensor& x) {
    return foldr([&](const Tensor& a, const Tensor& x) { return ++calls, a - x; }, x);
  });
  expect_values(f(tensor({{3., 4.}})), {3, 4});
  if (is_eager()) {
    EXPECT_EQ(calls, 0);
  }
}

}  // namespace
}  // namespace reel
