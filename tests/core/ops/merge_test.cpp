// merge_dims, split_dim, squeeze, broadcast_to: in every mode, and their errors.
#include "reel/tests/modes.h"

namespace reel {
namespace {

/// Returns 0, 1, 2, ... in these dims.
Tensor counted(const Dims& dims) {
  std::int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.size();
  return reshape(range(count, f32), dims);
}

class MergeTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 2}, feature{"feature", 2}, time{"time", tensor({3, 1}, {batch})};
  /// [[1, 2, 3], [4, -, -]]
  const Tensor ragged = tensor({1., 2., 3., 4., NAN, NAN}, {batch, time});
};
REEL_IN_EVERY_MODE(MergeTest);

TEST_P(MergeTest, PlainAxesMultiply) {
  const Tensor x = counted({2, 3, 2});
  const Tensor y = run([](const Tensor& x) { return merge_dims(x, {0, 1}); })(x);
  EXPECT_EQ(str(y.type()), "f32[6,2]");
  expect_values(y, values_of(x));
  EXPECT_EQ(str(run([](const Tensor& x) {
                  return merge_dims(x, {1, 2});
                })(zeros({0, 3, 4}))
                    .type()),
            "f32[0,12]");
}

TEST_P(MergeTest, AxesMoveTogetherInTheOrderGiven) {
  const Dim a("a", 2), b("b", 3), c("c", 2);
  const Tensor y = run([](const Tensor& x) {
    return merge_dims(x, {x.dim("c"), x.dim("a")});
  })(counted({a, b, c}));
  EXPECT_EQ(str(y.type()), "f32[c*a=4,b=3]");
  expect_values(y, {0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
}

TEST_P(MergeTest, TheNewDimMayBeGiven) {
  const Dim b("b", 3), both("both", 6), named("pairs");
  const auto merge = [](const Tensor& x, const Dim& to) {
    return merge_dims(x, {x.dim("batch"), x.dim("b")}, to);
  };
  const Tensor x = counted({batch, b, feature});
  EXPECT_EQ(run(merge)(x, both).dim(0), both);
  EXPECT_EQ(run(merge)(x, named).dim(0).name(), "pairs");
  EXPECT_EQ(message_of<ShapeError>([&] { run(merge)(x, Dim("both", 5)); }),
            "merge_dims: dim both=5 has size 5, but [batch=2,b=3] of "
            "f32[batch=2,b=3,feature=2] together has size 6");
}

TEST_P(MergeTest, ARaggedDimInFrontStaysRagged) {
  const Tensor x =
      tensor({1., 2., 3., 4., 5., 6., 7., 8., NAN, NAN, NAN, NAN}, {batch, time, feature});
  const auto merge = [](const Tensor& x) {
    return merge_dims(x, {x.dim("time"), x.dim("feature")});
  };
  const Tensor y = run(merge)(x);
  EXPECT_EQ(str(y.type()), "f32[batch=2,time*feature[batch=2]]");
  expect_values(y.dim(1).lengths(), {6, 2});
  expect_values(mask_padding(y), {1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0});
  const auto back = [](const Tensor& y, const Tensor& like) {
    return split_dim(y, 1, {like.dim("time"), like.dim("feature")}, {.fill = 0});
  };
  const Tensor z = run(back)(y, x);
  EXPECT_EQ(z.type(), x.type());
  expect_values(mask_padding(z), values_of(mask_padding(x)));
}

TEST_P(MergeTest, PaddingThatBecomesVisibleIsZero) {
  const auto merge = [](const Tensor& x) {
    return merge_dims(x, {x.dim("batch"), x.dim("time")}, {.counts_padding = true});
  };
  const Tensor y = run(merge)(ragged);
  EXPECT_EQ(y.dim(0).name(), "batch*time");
  EXPECT_FALSE(y.dim(0).is_ragged());
  expect_values(y, {1, 2, 3, 4, 0, 0});
  const auto back = [](const Tensor& y, const Tensor& like) {
    return split_dim(y, 0, {like.dim("batch"), like.dim("time")});
  };
  EXPECT_EQ(run(back)(y, ragged).type(), ragged.type());
  // If lengths lie over a merged dim, time counts as full afterwards.
  const Tensor x = expand(ragged, {batch, feature, time});
  const Tensor z = run([](const Tensor& x) {
    return merge_dims(x, {x.dim("batch"), x.dim("feature")});
  })(x);
  expect_values(z, {1, 2, 3, 1, 2, 3, 4, 0, 0, 4, 0, 0});
}

TEST_P(MergeTest, GradientsLeaveThePaddingOut) {
  const Tensor weights = tensor({1., 2., 3., 4., 5., 6.});
  const auto loss = [](const Tensor& x, const Tensor& w) {
    const Tensor y = merge_dims(x, {x.dim("batch"), x.dim("time")}, {.counts_padding = true});
    return sum(square(y) * reshape(w, {y.dim(0)}));
  };
  const Tensor g = run([loss](const Tensor& x, const Tensor& w) {
    return grad([&](const Tensor& x) { return loss(x, w); })(x);
  })(ragged, weights);
  expect_values(mask_padding(g), {2, 8, 18, 32, 0, 0});
  const auto second = [loss](const Tensor& x, const Tensor& w) {
    return grad([&](const Tensor& x) {
      return sum(grad([&](const Tensor& x) { return loss(x, w); })(x));
    })(x);
  };
  expect_values(mask_padding(run(second)(ragged, weights)), {2, 4, 6, 8, 0, 0});
}

TEST_P(MergeTest, SplitsAPlainAxis) {
  const auto split = [](const Tensor& x) { return split_dim(x, 1, {2, unknown, 1}); };
  const Tensor y = run(split)(counted({2, 6}));
  EXPECT_EQ(str(y.type()), "f32[2,2,3,1]");
  expect_values(y, values_of(counted({2, 6})));
  EXPECT_EQ(str(run([](const Tensor& x) { return split_dim(x, -1, {}); })(zeros({2, 1})).type()),
            "f32[2]");
}

TEST_P(MergeTest, SplitsAStaticDim) {
  const Dim gates("gates", 6), gate("gate", 3);
  const auto split = [](const Tensor& x, const Dim& gate) {
    return split_dim(x, x.dim("gates"), {Dim("part"), gate});
  };
  EXPECT_EQ(str(run(split)(counted({gates, batch}), gate).type()), "f32[part=2,gate=3,batch=2]");
}

TEST_P(MergeTest, ARaggedAxisIsPaddedToMultiples) {
  const Dim window("window", 2);
  const auto split = [](const Tensor& x, const Dim& window) {
    return split_dim(x, x.dim("time"), {Dim("chunk"), window}, {.fill = 0});
  };
  const Tensor y = run(split)(ragged, window);
  EXPECT_EQ(str(y.type()), "f32[batch=2,chunk[batch=2],window=2]");
  expect_values(y.dim("chunk").lengths(), {2, 1});
  expect_values(mask_padding(y), {1, 2, 3, 0, 4, 0, 0, 0});
  const auto square_of = [split](const Tensor& x, const Dim& window) {
    return grad([&](const Tensor& x) { return sum(square(split(x, window))); })(x);
  };
  expect_values(mask_padding(run(square_of)(ragged, window)), {2, 4, 6, 8, 0, 0});
}

TEST_P(MergeTest, ADimWithOneSizeThatARunKnowsIsPaddedToo) {
  const Dim steps("steps", scalar(5)), window("window", 2);
  const auto split = [](const Tensor& x, const Dim& window) {
    return split_dim(x, x.dim("steps"), {Dim("chunk"), window}, {.fill = 0});
  };
  const Tensor y = run(split)(counted({steps}), window);
  expect_values(y, {0, 1, 2, 3, 4, 0});
  const auto both = [](const Tensor& x) {
    const Tensor y = merge_dims(x, {x.dim("steps"), x.dim("batch")});
    return split_dim(y, 0, {x.dim("steps"), x.dim("batch")});
  };
  const Tensor x = counted({steps, batch});
  EXPECT_EQ(run(both)(x).type(), x.type());
  expect_values(run(both)(x), values_of(x));
}

TEST_P(MergeTest, SqueezeDropsAxesOfSizeOne) {
  const Dim one("one", 1);
  const auto drop = [](const Tensor& x) { return squeeze(x, {0, -1}); };
  EXPECT_EQ(str(run(drop)(zeros({1, 3, 1})).type()), "f32[3]");
  EXPECT_EQ(str(run([](const Tensor& x) { return squeeze(x, x.dim("one")); })(
                    expand(ragged, {batch, one, time}))
                    .type()),
            "f32[batch=2,time[batch=2]]");
}

TEST_P(MergeTest, AnAxisOfOneElementMovesNoLengths) {
  const Dim one("one", 1);
  const Tensor first = counted({batch, time}), behind = transpose(first, Axes{time, batch});
  for (const Tensor& x : {first, behind})
    for (int at = 0; at < 3; ++at) {
      Dims dims = x.dims();
      dims.insert(dims.begin() + at, one);
      const auto there = [&](const Tensor& x) { return reshape(x, dims); };
      EXPECT_EQ(run(there)(x).dims(), dims);
      const auto back = [&](const Tensor& x) { return squeeze(reshape(x, dims), one) + x; };
      expect_values(mask_padding(run(back)(x)), values_of(mask_padding(x * 2)));
      const auto loss = [&](const Tensor& x) { return sum(square(squeeze(expand(x, dims), one))); };
      const auto slope = [&](const Tensor& x) { return grad(loss)(x); };
      expect_values(mask_padding(run(slope)(x)), values_of(mask_padding(x * 2)));
    }
}

TEST_P(MergeTest, BroadcastToFollowsNumPyOrExpands) {
  const auto plain = [](const Tensor& x) { return broadcast_to(x, {2, 2, 3}); };
  expect_values(run(plain)(tensor({{1}, {2}})), {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  const auto named = [](const Tensor& x, const Tensor& like) {
    return broadcast_to(x, like.dims());
  };
  expect_values(mask_padding(run(named)(tensor({1., 2.}, {batch}), ragged)), {1, 1, 1, 2, 0, 0});
  const auto shaped = [](const Tensor& x) { return broadcast_to(x, zeros({0, 3}).shape()); };
  EXPECT_EQ(str(run(shaped)(zeros({1, 3})).type()), "f32[0,3]");
}

TEST_P(MergeTest, GradientsOfUnknownSizesAskTheTensor) {
  // A loop of unknown length gives a plain axis of a size that is known only at run time.
  const auto loss = [](const Tensor& x) {
    const auto [ys, s, length] = scan(Scan{
        .initial = x,
        .cond = [](const Tensor& s) { return sum(s) < 20; },
        .body =
            [](None, const Tensor& s) {
              return std::pair{s * 2, s * 2};
            },
        .max_seq_len = 10,
    });
    const Tensor plain = split_dim(merge_dims(reshape(ys, {-1, 2, 1}), {0, 1}), 0, {unknown, 2});
    return sum(square(squeeze(reshape(plain, {-1, 1}), -1)));
  };
  const Tensor g = run([loss](const Tensor& x) { return grad(loss)(x); })(tensor({1., 2.}));
  expect_values(g, {2 * (4. + 16 + 64), 4 * (4. + 16 + 64)});
}

TEST(MergeErrorTest, MessagesNameTheNumbers) {
  const Dim batch("batch", 2), feature("feature", 5), window("window", 2);
  const Dim time("time", tensor({3, 1}, {batch}));
  const Tensor x = zeros({batch, time, feature});
  EXPECT_EQ(message_of<ArgumentError>([&] { merge_dims(x, Axes(Dims{})); }),
            "merge_dims: takes at least one axis of f32[batch=2,time[batch=2],feature=5]");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              merge_dims(x, {0, 0});
            }),
            "merge_dims: axis batch=2 of f32[batch=2,time[batch=2],feature=5] is named twice");
  EXPECT_EQ(message_of<ShapeError>([&] {
              split_dim(x, feature, {Dim("part"), window});
            }),
            "split_dim: axis feature=5 of f32[batch=2,time[batch=2],feature=5] has size 5, but "
            "[part,window=2] take multiples of 2; {.fill = value} adds elements up to a multiple");
  EXPECT_EQ(message_of<ShapeError>([&] {
              split_dim(x, feature, {Dim("a"), Dim("b")});
            }),
            "split_dim: [a,b] leaves two sizes open; one dim may be a name only");
  EXPECT_EQ(message_of<ShapeError>([&] {
              split_dim(x, time, {window, Dim("chunk")});
            }),
            "split_dim: axis time[batch=2] of f32[batch=2,time[batch=2],feature=5] is ragged, so "
            "the first new dim, and only that one, must be ragged or a name; got [window=2,chunk]");
  EXPECT_EQ(message_of<ShapeError>([] {
              split_dim(zeros({6}), 0, {4, 2});
            }),
            "split_dim: axis 0 of f32[6] has size 6, but [4,2] make 8");
  EXPECT_EQ(
      message_of<ShapeError>([] {
        split_dim(zeros({6}), 0, {unknown, 4});
      }),
      "split_dim: axis 0 of f32[6] has size 6, but [?,4] take multiples of 4; {.fill = value} "
      "adds elements up to a multiple");
  EXPECT_EQ(message_of<ShapeError>([] {
              split_dim(zeros({6}), 0, {unknown, unknown});
            }),
            "split_dim: [?,?] leaves two sizes open; one may be unknown");
  EXPECT_EQ(message_of<ShapeError>([] {
              squeeze(zeros({2, 3}), 1);
            }),
            "squeeze: axis 1 of f32[2,3] has size 3, not 1");
  EXPECT_EQ(message_of<ShapeError>([&] { squeeze(x, time); }),
            "squeeze: axis time[batch=2] of f32[batch=2,time[batch=2],feature=5] has no fixed "
            "size; use gather(x, scalar(0), axis)");
}

}  // namespace
}  // namespace reel
