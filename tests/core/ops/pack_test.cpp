// pack, unpack, cum_concat, mask: in every mode, and their errors.
#include "reel/tests/modes.h"

namespace reel {
namespace {

class PackTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, time{"time", tensor({3, 2, 1}, {batch})};
  /// [[1, 2, 3], [4, 5, -], [7, -, -]]
  const Tensor x = tensor({1., 2., 3., 4., 5., NAN, 7., NAN, NAN}, {batch, time});
};
REEL_IN_EVERY_MODE(PackTest);

TEST_P(PackTest, ValidElementsInTheOrderOfTheDims) {
  const auto by_batch = [](const Tensor& x) { return pack(x, {x.dim("batch"), x.dim("time")}); };
  const auto by_time = [](const Tensor& x) { return pack(x, {x.dim("time"), x.dim("batch")}); };
  const Tensor y = run(by_batch)(x);
  EXPECT_EQ(str(y.type()), "f32[packed=6]");
  expect_values(y, {1, 2, 3, 4, 5, 7});
  expect_values(run(by_time)(x), {1, 4, 7, 2, 5, 3});
  const Dim feature("feature", 2);
  const Tensor z = run(by_batch)(expand(x, {batch, feature, time}));
  EXPECT_EQ(str(z.type()), "f32[packed=6,feature=2]");
  expect_values(z, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 7, 7});
}

TEST_P(PackTest, UnpackIsTheInverse) {
  const auto there = [](const Tensor& x) {
    const Dims dims = x.dims();
    return unpack(pack(x, dims, Dim("frames")) * 2, 0, dims);
  };
  const Tensor y = run(there)(x);
  EXPECT_EQ(y.type(), x.type());
  expect_values(y, {2, 4, 6, 8, 10, 0, 14, 0, 0});
  const auto over = [](const Tensor& x, const Tensor& backup) {
    return unpack(pack(x, x.dims()), 0, x.dims(), backup);
  };
  expect_values(run(over)(x, full({batch, time}, 9)), {1, 2, 3, 4, 5, 9, 7, 9, 9});
  const auto turned = [](const Tensor& x) {
    const Dims dims{x.dim("time"), x.dim("batch")};
    return unpack(pack(x, dims), 0, dims);
  };
  EXPECT_EQ(str(run(turned)(x).type()), "f32[time[batch=3],batch=3]");
  expect_values(mask_padding(run(turned)(x)), {1, 4, 7, 2, 5, 0, 3, 0, 0});
}

TEST_P(PackTest, AMaskSelects) {
  const Tensor v = tensor({10., 20., 30.}, {batch}), mask = tensor({true, false, true}, {batch});
  const auto twice = [](const Tensor& v, const Tensor& mask) {
    return unpack(pack(v, mask) * 2, 0, mask, v);
  };
  const Tensor y = run(twice)(v, mask);
  EXPECT_EQ(y.type(), v.type());
  expect_values(y, {20, 20, 60});
  expect_values(run(twice)(v, tensor({false, false, false}, {batch})), {10, 20, 30});
  // Padding of the mask has no meaning.
  const auto odd = [](const Tensor& x) { return pack(x, mod(cast(x, i32), 2) == 1); };
  expect_values(run(odd)(x), {1, 3, 5, 7});
}

TEST_P(PackTest, OtherDimsOfTheMaskStay) {
  const auto large = [](const Tensor& x) { return pack(x, x > 1.5, x.dim("time")); };
  const Tensor y = run(large)(x);
  EXPECT_EQ(str(y.type()), "f32[batch=3,packed[batch=3]]");
  expect_values(y.dim(1).lengths(), {2, 2, 1});
  expect_values(mask_padding(y), {2, 3, 4, 5, 7, 0});
  const auto back = [](const Tensor& x) {
    return unpack(pack(x, x > 1.5, x.dim("time")), 1, x > 1.5, x.dim("time"), x * 10);
  };
  expect_values(mask_padding(run(back)(x)), {10, 2, 3, 4, 5, 0, 7, 0, 0});
  const auto valid = [](const Tensor& x) {
    const Tensor y = pack(x, x.dim("time"));
    return std::pair{y, unpack(y, 1, {x.dim("time")})};
  };
  const auto [packed, again] = run(valid)(x);
  expect_values(packed.dim(1).lengths(), {3, 2, 1});
  EXPECT_EQ(again.type(), x.type());
  expect_values(mask_padding(again), values_of(mask_padding(x)));
}

TEST_P(PackTest, PlainSizesAsNumPysBooleanIndices) {
  const Tensor v = tensor({{1., 2.}, {3., 4.}, {5., 6.}});
  const auto large = [](const Tensor& v) { return pack(v, v > 2.5); };
  EXPECT_EQ(str(run(large)(v).type()), "f32[4]");
  expect_values(run(large)(v), {3, 4, 5, 6});
  const auto rows = [](const Tensor& v, const Tensor& mask) {
    const Tensor y = pack(v, mask);
    return std::pair{y, unpack(y, 0, mask, v * 10)};
  };
  const auto [y, z] = run(rows)(v, tensor({true, false, true}));
  expect_values(y, {1, 2, 5, 6});
  EXPECT_EQ(str(z.type()), "f32[3,2]");
  expect_values(z, {1, 2, 30, 40, 5, 6});
  const auto turned = [](const Tensor& v, const Tensor& mask) {
    const Tensor y = pack(v, mask, {1, 0});
    return std::pair{y, unpack(y, 0, mask, {1, 0}, -1)};
  };
  const auto [a, b] = run(turned)(v, v > 2.5);
  expect_values(a, {3, 5, 4, 6});
  expect_values(b, {-1, 3, 5, -1, 4, 6});
  EXPECT_EQ(str(run(large)(zeros({0, 2})).type()), "f32[0]");
  expect_values(run([](const Tensor& v, const Tensor& m) { return unpack(pack(v, m), 0, m); })(
                    tensor({true, false, true}), tensor({true, true, false})),
                {1, 0, 0});
}

TEST_P(PackTest, AGivenDimMustHoldThem) {
  const Dim six("six", 6), five("five", 5);
  const auto valid = [](const Tensor& x, const Dim& to) { return pack(x, x.dims(), to); };
  EXPECT_EQ(run(valid)(x, six).dim(0), six);
  EXPECT_EQ(message_of<ShapeError>([&] { run(valid)(x, five); }),
            "pack: a mask of type boolean[batch*time=9] selects 6 elements, but dim five=5 has 5 "
            "there");
}

TEST_P(PackTest, GradientsGoBackToWhereElementsCameFrom) {
  const auto loss = [](const Tensor& x) { return sum(square(pack(x, x.dims())) * 3); };
  const auto gradient = [loss](const Tensor& x) { return grad(loss)(x); };
  expect_values(mask_padding(run(gradient)(x)), {6, 12, 18, 24, 30, 0, 42, 0, 0});
  const auto second = [gradient](const Tensor& x) {
    return grad([&](const Tensor& x) { return sum(gradient(x) * x); })(x);
  };
  expect_values(mask_padding(run(second)(x)), {12, 24, 36, 48, 60, 0, 84, 0, 0});
  const auto back = [](const Tensor& packed, const Tensor& like) {
    return grad([&](const Tensor& p) { return sum(square(unpack(p, 0, like.dims()))); })(packed);
  };
  const Dim six("six", 6);
  expect_values(run(back)(tensor({1., 2., 3., 4., 5., 6.}, {six}), x), {2, 4, 6, 8, 10, 12});
}

TEST_P(PackTest, ATraceServesOtherLengths) {
  const auto f = run([](const Tensor& x) {
    const Tensor y = pack(x, x.dims());
    return std::pair{sum(y), unpack(y + 1, 0, x.dims())};
  });
  for (const int last : {1, 3, 0}) {
    const Dim time("time", tensor({1, 2, last}, {batch}));
    const auto [total, y] = f(ones({batch, time}));
    EXPECT_EQ(total.item<float>(), 3 + last);
    EXPECT_EQ(y.dim(1), time);
    EXPECT_EQ(sum(y).item<float>(), 2 * (3 + last));
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(PackTest, CumConcatAddsOneStepToEachEntry) {
  const auto step = [](const Tensor& x, const Tensor& accum) {
    return cum_concat(x, accum, accum.dim("time"));
  };
  const auto [y, dim] = run(step)(full({batch}, 100), x);
  EXPECT_EQ(dim, time + 1);
  EXPECT_EQ(y.dim(1), dim);
  expect_values(mask_padding(y), {1, 2, 3, 100, 4, 5, 100, 0, 7, 100, 0, 0});
  const auto plain = [](const Tensor& x, const Tensor& accum) {
    return cum_concat(x, accum, 1).first;
  };
  expect_values(run(plain)(tensor({5., 6.}), zeros({2, 1})), {0, 5, 0, 6});
  const auto gradient = [](const Tensor& x, const Tensor& accum) {
    return grad([](const std::pair<Tensor, Tensor>& p) {
      return sum(square(cum_concat(p.first, p.second, p.second.dim("time")).first));
    })(std::pair{x, accum});
  };
  const auto [dx, daccum] = run(gradient)(full({batch}, 100), x);
  expect_values(dx, {200, 200, 200});
  expect_values(mask_padding(daccum), {2, 4, 6, 8, 10, 0, 14, 0, 0});
}

TEST_P(PackTest, AHistoryGrowsInALoop) {
  const auto step = run(
      [](const Tensor& x, const Tensor& h) { return cum_concat(x, h, h.dim(h.rank() - 1)).first; });
  for (const bool is_ragged : {false, true}) {
    Dim d = is_ragged ? Dim("history", zeros({batch}, i32)) : Dim("history", 0);
    const Dim start = d;
    Tensor h = zeros({batch, d});
    for (int t = 0; t < 4; ++t) {
      h = step(full({batch}, t + 1), h);
      d = d + 1;
      EXPECT_EQ(h.dim(1), d);
    }
    EXPECT_EQ(d, start + 4);
    expect_values(h, {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4});
  }
}

TEST_P(PackTest, MaskIsTrueAllAlongADimWithOneSize) {
  const Dim steps("steps", scalar(2));
  const auto of = [](const Tensor& x) { return mask(x.dim(0)); };
  expect_values(run(of)(zeros({batch})), {1, 1, 1});
  expect_values(run(of)(zeros({steps})), {1, 1});
  expect_values(run([](const Tensor& x) { return mask(x.dim("time")); })(x),
                {1, 1, 1, 1, 1, 0, 1, 0, 0});
}

TEST(PackErrorTest, MessagesNameTheTypes) {
  const Dim batch("batch", 2), time("time", 3);
  const Tensor x = zeros({batch, time});
  EXPECT_EQ(message_of<DTypeError>([&] { pack(x, x); }),
            "pack: the mask must be boolean, got f32[batch=2,time=3]");
  EXPECT_EQ(message_of<ShapeError>([&] { pack(zeros({batch}), x > 0); }),
            "pack: the mask boolean[batch=2,time=3] does not fit f32[batch=2], which must have all "
            "its dims");
  EXPECT_EQ(message_of<ShapeError>([] {
              pack(zeros({2, 3}), zeros({3}, boolean));
            }),
            "pack: the mask boolean[3] does not fit f32[2,3]; plain sizes are those of the leading "
            "axes");
  EXPECT_EQ(message_of<ShapeError>([] {
              pack(zeros({2, 3}), zeros({2, 3}, boolean), 1);
            }),
            "pack: the mask boolean[2,3] has plain sizes, of which 1 are packed; pack all of them, "
            "or name them, because entries of the others may select differently");
  EXPECT_EQ(message_of<ShapeError>([] {
              pack(zeros({2, 3}), {0, 1});
            }),
            "pack: [2,3] are plain sizes, and all their elements valid; use reshape");
  EXPECT_EQ(message_of<ShapeError>([&] { cum_concat(zeros({time}), x, time); }),
            "cum_concat: x must have all dims of accum but axis time=3 of f32[batch=2,time=3], got "
            "f32[time=3]");
}

// The message must name the called function instead of an op inside it.
TEST(PackErrorTest, CumConcatSpeaksForItself) {
  const Dim batch("batch", 2), ragged("history", tensor({1, 2}, {batch}));
  EXPECT_EQ(message_of<ShapeError>([] {
              cum_concat(zeros({3}), zeros({2, 4}), 1);
            }),
            "cum_concat: x must have all dims of accum but axis 1 of f32[2,4], got f32[3]");
  EXPECT_EQ(message_of<DTypeError>([] {
              cum_concat(zeros({2}, i32), zeros({2, 4}), 1);
            }),
            "cum_concat: dtypes differ: i32[2] behind f32[2,4]; cast one of them");
  EXPECT_EQ(message_of<ShapeError>([&] { cum_concat(scalar(1.), zeros({ragged}), ragged); }),
            "cum_concat: f32[history[batch=2]] has no dim batch=2, over which the lengths of "
            "history[batch=2] run; expand it");
}

TEST(PackErrorTest, UnpackSpeaksForItself) {
  const Dim batch("batch", 2), time("time", 3), packed("packed", 4), other("other", 2);
  const Tensor mask = tensor({true, false, true, true, false, false}, {batch, time});
  EXPECT_EQ(message_of<ShapeError>([&] { unpack(zeros({packed}), packed, mask); }),
            "unpack: a mask of type boolean[batch*time=6] selects 3 elements, but dim packed=4 has "
            "4 there");
  EXPECT_EQ(message_of<ShapeError>([] {
              unpack(zeros({4}), 0, tensor({true, false, true}));
            }),
            "unpack: a mask of type boolean[3] selects 2 elements, but the packed axis has 4 "
            "there");
  EXPECT_EQ(message_of<ShapeError>([&] { unpack(zeros({packed}), packed, mask, time); }),
            "unpack: the mask boolean[batch=2,time=3] selects in every entry of batch=2, which is "
            "no dim of f32[packed=4]");
  const Dim three("packed", 3);
  EXPECT_EQ(message_of<DTypeError>([&] {
              unpack(zeros({three}), three, mask, zeros({batch, time}, i32));
            }),
            "unpack: dtypes differ: f32[packed=3], the backup is i32[batch=2,time=3]; cast one of "
            "them");
  EXPECT_EQ(message_of<ShapeError>([&] {
              unpack(zeros({three}), three, mask, zeros({batch, other}));
            }),
            "unpack: the backup f32[batch=2,other=2] has the dim other=2, which neither "
            "f32[packed=3] nor the mask boolean[batch=2,time=3] has");
}

}  // namespace
}  // namespace reel
