// ys of scan and map that have a dim of another size in every iteration: they are stacked along a
// ragged dim with lengths over the iterations.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class VaryingYsTest : public InEveryMode {
 protected:
  const Dim time{"time", 3}, batch{"batch", 2};
};
REEL_IN_EVERY_MODE(VaryingYsTest);

/// Expects that the gradient of f, and the gradient of a weighted sum of it, agree with
/// differences. f: f64 tensor -> scalar.
template <class Run, class F>
void expect_derivatives(const Run& run, const F& f, const Tensor& x) {
  expect_gradient_of(f, x, run(grad(f))(x), 1e-6);
  const auto slope = [&f](const Tensor& x) {
    const Tensor g = grad(f)(x);
    return sum(g * cast(range(static_cast<int>(g.numel())) + 1, f64));
  };
  expect_gradient_of(slope, x, run(grad(slope))(x), 1e-5);
}

struct History {
  Tensor h;
  Dim dim;
};

/// Each iteration appends x to the history and returns it times its size.
auto histories(const Tensor& x, const Dim& start) {
  return scan(Scan{.spatial_dim = x.dim("time"),
                   .initial = History{zeros({x.dim("batch"), start}, x.dtype()), start},
                   .xs = x,
                   .body = [](const Tensor& x, const History& s) {
                     const auto [h, dim] = cum_concat(x, s.h, s.dim);
                     return std::pair{h * cast(dim.lengths(), x.dtype()), History{h, dim}};
                   }});
}

TEST_P(VaryingYsTest, AStateThatGrowsIsStackedWithLengthsOverTheTime) {
  const auto f = run([](const Tensor& x) {
    const auto [ys, last, dim] = histories(x, Dim("hist", 0));
    return std::tuple{ys, ys.dim("hist").lengths(), last.h};
  });
  const auto [ys, lengths, last] = f(tensor({1., 2., 3., 4., 5., 6.}, {batch, time}));
  EXPECT_EQ(ys.dims().size(), 3u);
  EXPECT_EQ(ys.dims()[0], time);
  EXPECT_EQ(ys.dims()[2].length_dims(), Dims{time});
  expect_values(lengths, {1, 2, 3});
  expect_values(transpose(mask_padding(ys), {time, batch, ys.dims()[2]}),
                {1, 0, 0, 4, 0, 0, 2, 4, 0, 8, 10, 0, 3, 6, 9, 12, 15, 18});
  expect_values(last, {1, 2, 3, 4, 5, 6});
}

TEST_P(VaryingYsTest, PackedElementsOfEachSlice) {
  const auto f = run([](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("time"),
                     .xs = x,
                     .body = [](const Tensor& x) { return pack(x, x > 0) * 10; }})
        .ys;
  });
  const Tensor ys = f(tensor({1., -2., 3., 4., -5., -6.}, {time, batch}));
  expect_values(ys.dims()[1].lengths(), {1, 2, 0});
  expect_values(mask_padding(ys), {10, 0, 30, 40, 0, 0});
  const Tensor one = f(tensor({1., 2.}, {Dim("time", 1), batch}));
  expect_values(one.dims()[1].lengths(), {2});
  const Tensor none = f(zeros({Dim("time", 0), batch}));
  EXPECT_EQ(none.shape(), (std::vector<std::int64_t>{0, 0}));
}

TEST_P(VaryingYsTest, MapStacksThemToo) {
  const auto f = run([](const Tensor& counts, const Tensor& w) {
    return map([&](const Tensor& n) { return cast(range(Dim("place", n)), f32) * w + 1; }, counts,
               {.spatial_dim = counts.dim("time")});
  });
  const Tensor ys = f(tensor({2, 0, 3}, {time}), scalar(2.));
  expect_values(ys.dims()[1].lengths(), {2, 0, 3});
  expect_values(mask_padding(ys), {1, 3, 0, 0, 0, 0, 1, 3, 5});
}

TEST_P(VaryingYsTest, TwoAxesMayVary) {
  const auto f = run([](const Tensor& counts) {
    return scan(Scan{.spatial_dim = counts.dim("time"),
                     .xs = counts,
                     .body =
                         [](const Tensor& n) {
                           const Dim rows("rows", n), columns("columns", 3 - n);
                           return expand(range(rows) * 10, {rows, columns}) +
                                  expand(range(columns), {rows, columns});
                         }})
        .ys;
  });
  const Tensor ys = f(tensor({1, 2, 3}, {time}));
  expect_values(ys.dims()[1].lengths(), {1, 2, 3});
  expect_values(ys.dims()[2].lengths(), {2, 1, 0});
  expect_values(mask_padding(ys), {0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_P(VaryingYsTest, ReverseKeepsTheOrderOfX) {
  const auto f = run([](const Tensor& counts) {
    const auto [ys, last, dim] =
        scan(Scan{.spatial_dim = counts.dim("time"),
                  .initial = scalar(0),
                  .xs = counts,
                  .body =
                      [](const Tensor& n, const Tensor& s) {
                        return std::pair{range(Dim("place", n)) + s, s + 10};
                      },
                  .reverse = true});
    return ys;
  });
  const Tensor ys = f(tensor({2, 1, 3}, {time}));
  expect_values(ys.dims()[1].lengths(), {2, 1, 3});
  expect_values(mask_padding(ys), {20, 21, 0, 10, 0, 0, 0, 1, 2});
}

/// Entries of other lengths, and a dim with a length for every entry and iteration.
TEST_P(VaryingYsTest, EntriesHaveLengthsOfTheirOwn) {
  const auto f = run([](const Tensor& counts) {
    return scan(Scan{.spatial_dim = counts.dim("time"),
                     .xs = counts,
                     .body =
                         [](const Tensor& n) {
                           const Dim place("place", n);
                           return cast(mask(place), f32) * (cast(range(place), f32) + 1);
                         }})
        .ys;
  });
  const Dim frames("time", tensor({3, 1}, {batch}));
  const Tensor ys = f(tensor({{1, 0, 2}, {2, 7, 7}}, {batch, frames}));
  const Tensor lengths = transpose(ys.dim("place").lengths(), {batch, frames});
  expect_values(lengths, {1, 0, 2, 2, 0, 0});
  expect_values(sum(mask_padding(ys), {frames, ys.dim("place")}), {1 + 1 + 2, 1 + 2});
  // Each entry alone.
  const Dim one("batch", 1), first("time", tensor({3}, {one}));
  const Tensor alone = f(tensor({{1, 0, 2}}, {one, first}));
  expect_values(sum(mask_padding(alone), {first, alone.dim("place")}), {4});
}

TEST_P(VaryingYsTest, ReverseEntriesKeepTheOrderOfX) {
  const auto f = run([](const Tensor& counts) {
    return scan(Scan{.spatial_dim = counts.dim("time"),
                     .initial = zeros({counts.dim("batch")}),
                     .xs = counts,
                     .body =
                         [](const Tensor& n, const Tensor& s) {
                           const Dim place("place", n);
                           return std::pair{cast(mask(place), f32) * (s + 1), s + 1};
                         },
                     .reverse = true})
        .ys;
  });
  const Dim frames("time", tensor({3, 1}, {batch}));
  const Tensor ys = f(tensor({{1, 0, 2}, {2, 7, 7}}, {batch, frames}));
  const Tensor sums = sum(mask_padding(ys), ys.dim("place"));
  expect_values(mask_padding(transpose(sums, {batch, frames})), {3, 0, 2, 2, 0, 0});
}

TEST_P(VaryingYsTest, TheyAreMadeInsideOtherLoops) {
  const auto f = [](const Tensor& counts, const Tensor& w) {
    return fori_loop(
        0, 3,
        [&](const Tensor& i, const Tensor& s) {
          const Tensor ys =
              map([&](const Tensor& n) { return cast(range(Dim("place", n + i)), f32) * w; },
                  counts, {.spatial_dim = counts.dim("time")});
          return s + sum(ys);
        },
        scalar(0.));
  };
  // Counts 2 0 3, then 3 1 4, then 4 2 5: sums of 0 ... n - 1.
  expect_values(run(f)(tensor({2, 0, 3}, {time}), scalar(2.)), {2. * (1 + 3 + 3 + 6 + 6 + 1 + 10)});
  const auto slope = [&](const Tensor& counts, const Tensor& w) {
    return grad([&](const Tensor& w) { return square(f(counts, w)); })(w);
  };
  expect_values(run(slope)(tensor({2, 0, 3}, {time}), scalar(2.)), {2. * 2 * 30 * 30});
}

TEST_P(VaryingYsTest, AHistoryOfEachEntryFinishesWithIt) {
  const auto f = run([](const Tensor& x) {
    const Dim batch = x.dim("batch"), start("hist", zeros({batch}, i32));
    const Tensor ys = histories(x, start).ys;
    return std::pair{ys, ys.dim("hist").lengths()};
  });
  const Dim frames("time", tensor({1, 3}, {batch}));
  const auto [ys, lengths] = f(tensor({{1., NAN, NAN}, {4., 5., 6.}}, {batch, frames}));
  expect_values(transpose(lengths, {batch, frames}), {1, 0, 0, 1, 2, 3});
  expect_values(sum(mask_padding(ys), {frames, ys.dim("hist")}), {1, 4 + 18 + 45});
}

TEST_P(VaryingYsTest, AConditionEndsTheLoop) {
  const auto f = run([](const Tensor& limit) {
    return scan(Scan{.spatial_dim = Dim("step"),
                     .cond_dims = CondDims(Dims{}),
                     .initial = scalar(0),
                     .cond = [&](const Tensor& i) { return i < limit; },
                     .body =
                         [](const Tensor& i) {
                           return std::pair{range(Dim("place", i)), i + 1};
                         }})
        .ys;
  });
  const Tensor ys = f(scalar(3));
  expect_values(ys.dims()[1].lengths(), {0, 1, 2});
  expect_values(mask_padding(ys), {0, 0, 0, 0, 0, 1});
  EXPECT_EQ(f(scalar(0)).numel(), 0);
}

TEST_P(VaryingYsTest, GradientsAreDerivatives) {
  const auto loss = [this](const Tensor& x) {
    const Tensor ys = histories(reshape(x, {batch, time}), Dim("hist", 0)).ys;
    return sum(square(ys) * ys);
  };
  expect_derivatives([this](auto g) { return run(g); }, loss,
                     tensor({0.5, -0.7, 1.2, 0.4, 0.9, -1.1}, {}, f64));
  const auto entries = [this](const Tensor& x) {
    const Dim frames("time", tensor({1, 3}, {batch}));
    const Tensor ys = histories(reshape(x, {batch, frames}), Dim("hist", zeros({batch}, i32))).ys;
    return sum(square(ys) * ys);
  };
  const Tensor x = reshape(tensor({0.5, NAN, NAN, 0.4, 0.9, -1.1}, {}, f64), {6});
  expect_values(run(grad(entries))(x),
                {0.75, 0, 0, 3 * 0.16 * (1 + 8 + 27), 3 * 0.81 * (8 + 27), 3 * 1.21 * 27});
}

TEST_P(VaryingYsTest, AResultIsUsedInLaterLoops) {
  const auto f = run([](const Tensor& counts) {
    const Tensor ys = map([](const Tensor& n) { return cast(range(Dim("place", n)), f32) + 1; },
                          counts, {.spatial_dim = counts.dim("time")});
    const Dim place = ys.dims()[1];
    return map([&](const Tensor& y) { return sum(y); }, ys, {.spatial_dim = ys.dims()[0]}) +
           max(ys, place);
  });
  expect_values(f(tensor({2, 1, 3}, {time})), {3 + 2, 1 + 1, 6 + 3});
}

TEST_P(VaryingYsTest, PoliciesChangeNoGradient) {
  const auto loss = [this](const Checkpoint& checkpoint) {
    return [=, this](const Tensor& x) {
      const Dim start("hist", 0);
      const Tensor ys = scan(Scan{.spatial_dim = time,
                                  .initial = History{zeros({batch, start}), start},
                                  .xs = x,
                                  .body =
                                      [](const Tensor& x, const History& s) {
                                        const auto [h, dim] = cum_concat(x, s.h, s.dim);
                                        return std::pair{sin(h), History{square(h), dim}};
                                      },
                                  .checkpoint = checkpoint})
                            .ys;
      return sum(ys * ys);
    };
  };
  const Tensor x = tensor({0.5, -0.7, 1.2, 0.4, 0.9, -1.1}, {batch, time});
  const Tensor expected = run(grad(loss({})))(x);
  expect_values(run(grad(loss(Checkpoint::every(2))))(x), values_of(expected), 1e-6);
}

TEST_P(VaryingYsTest, VmapRunsThemForEachRow) {
  const auto f = run([](const Tensor& x) {
    return vmap(
        [](const Tensor& x) {
          const Dim start("hist", 0);
          const Tensor ys = scan(Scan{.spatial_dim = x.dim("time"),
                                      .initial = History{zeros({start}), start},
                                      .xs = x,
                                      .body =
                                          [](const Tensor& x, const History& s) {
                                            const auto [h, dim] = cum_concat(x, s.h, s.dim);
                                            return std::pair{h, History{h, dim}};
                                          }})
                                .ys;
          return sum(ys);
        },
        x.dim("batch"))(x);
  });
  expect_values(f(tensor({1., 2., 3., 4., 5., 6.}, {batch, time})), {10, 28});
}

TEST_P(VaryingYsTest, ErrorsNameYsThatCannotBeStacked) {
  const auto nested = run([](const Tensor& counts) {
    return scan(Scan{.spatial_dim = counts.dim("time"),
                     .xs = counts,
                     .body =
                         [](const Tensor& n) {
                           const Dim rows("rows", n);
                           const Dim columns("columns", range(rows));
                           return range(columns) + expand(range(rows), {rows, columns});
                         }})
        .ys;
  });
  const std::string message = message_of<ShapeError>([&] { nested(tensor({1, 2, 3}, {time})); });
  EXPECT_NE(message.find("whose dim columns[rows"), std::string::npos) << message;
  EXPECT_NE(message.find("which has another size in every iteration, so ys cannot be stacked"),
            std::string::npos);
}

TEST_P(VaryingYsTest, AFixedDimOfTheBodyStandsBesideAVaryingOne) {
  const auto packed = [](const Tensor& x) {
    return map(
        [](const Tensor& row) {
          const Dim two("two", 2);
          return expand(pack(row * row, row > 3., {row.dims()[0]}), two);
        },
        x, {.spatial_dim = x.dim("batch")});
  };
  const Tensor x = tensor({1., 5., 4., 2., 0., 9.}, {batch, time}, f64);
  const auto in_order = [](const Tensor& y, const char* varying) {
    return transpose(mask_padding(y), {y.dim("batch"), y.dim(varying), y.dim("two")});
  };
  expect_values(in_order(run(packed)(x), "packed"), {25, 25, 16, 16, 81, 81, 0, 0});
  const auto total = [=, this](const Tensor& x) {
    return sum(square(mask_padding(packed(reshape(x, {batch, time})))));
  };
  expect_derivatives([this](auto g) { return run(g); }, total, reshape(x, {-1}));

  const auto stacked = [](const Tensor& x) {
    return map(
        [](const Tensor& row) {
          const Dims parts{Dim("part"), Dim("two", 2)};
          return split_dim(row, row.dims()[0], parts, {.fill = -1});
        },
        x, {.spatial_dim = x.dim("batch")});
  };
  const Dim word("word", tensor({3, 1}, {batch}));
  const Tensor words = tensor({1., 2., 3., 4., 5., 6.}, {batch, word}, f64);
  expect_values(in_order(run(stacked)(words), "part"), {1, 2, 3, -1, 4, -1, 0, 0});
}

TEST(VaryingYsErrorsTest, TheFixedDimOfAnotherSizeIsNamed) {
  const Dim batch("batch", 2), time("time", 3);
  int size = 1;
  const std::string message = message_of<ShapeError>([&] {
    map(
        [&](const Tensor& row) {
          const Tensor some = pack(row, row > 3., {row.dims()[0]});
          return expand(some, Dim("width", ++size));
        },
        tensor({1., 5., 4., 2., 0., 9.}, {batch, time}), {.spatial_dim = batch});
  });
  EXPECT_NE(message.find("whose dim width=3 has another size in every iteration"),
            std::string::npos)
      << message;
}

/// In eager mode elements of a TensorArray keep their own dims.
TEST(VaryingArraysTest, TheLastElementHasTheDimOfTheLastState) {
  const Dim time("time", 3), batch("batch", 2);
  const auto f = [&](const Tensor& x) {
    const Dim start("hist", 0);
    const auto [ys, last, dim] =
        scan(Scan{.spatial_dim = time,
                  .initial = History{zeros({batch, start}, x.dtype()), start},
                  .xs = reshape(x, {batch, time}),
                  .body =
                      [](const Tensor& x, const History& s) {
                        const auto [h, dim] = cum_concat(x, s.h, s.dim);
                        return std::pair{square(h), History{h, dim}};
                      },
                  .return_tensor_arrays = std::true_type{}});
    EXPECT_EQ(ys[-1].dim("hist"), last.dim);
    EXPECT_EQ(ys[0].dim("hist"), start + 1);
    return sum(ys[-1] * last.h) + sum(ys[1]);
  };
  const Tensor x = tensor({0.5, -0.7, 1.2, 0.4, 0.9, -1.1}, {}, f64);
  expect_derivatives([](auto g) { return g; }, f, x);
  const Tensor packed = tensor({1., -2., 3., 4.}, {batch, Dim("width", 2)});
  const TensorArray ys = scan(Scan{.spatial_dim = batch,
                                   .xs = packed,
                                   .body = [](const Tensor& x) { return pack(x, x > 0); },
                                   .return_tensor_arrays = std::true_type{}})
                             .ys;
  expect_values(ys[0], {1});
  expect_values(ys[1], {3, 4});
  const auto traced = jit([&](const Tensor& x) {
    return scan(Scan{.spatial_dim = x.dim("batch"),
                     .xs = x,
                     .body = [](const Tensor& x) { return pack(x, x > 0); },
                     .return_tensor_arrays = std::true_type{}})
        .ys[0];
  });
  EXPECT_EQ(message_of<ShapeError>([&] { traced(packed); }),
            "scan \"scan\": y is f32[packed], whose dim packed has another size in every "
            "iteration, but elements of a TensorArray in a trace have one type; without "
            "return_tensor_arrays, ys are stacked along a ragged dim");
}

}  // namespace
}  // namespace reel
