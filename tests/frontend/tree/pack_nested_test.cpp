// pack_nested and unpack_nested: Dims of before come back, and tensors may lack dims of the mask.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Seq {
  Tensor x;
  Dim time;
};

const float kNan = std::numeric_limits<float>::quiet_NaN();

class PackNestedTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, beam{"beam", 2};
  const Dim time{"time", tensor({2, 1, 3}, {batch})};
  const Tensor mask = tensor({true, false, true}, {batch});
  const Tensor of_beams = tensor({{true, false}, {false, true}, {true, true}}, {batch, beam});

  Seq seq() const {
    const float p = kNan;
    return {tensor(std::vector<float>{1, 2, p, 3, p, p, 4, 5, 6}, {batch, time}), time};
  }
};
REEL_IN_EVERY_MODE(PackNestedTest);

TEST_P(PackNestedTest, UnpackingWithTheOriginalAsBackupGivesItsDims) {
  const auto f = run([](const Seq& s, const Tensor& mask) {
    const auto [p, packed] = pack_nested(s, mask);
    const Seq back = unpack_nested(Seq{p.x * 10.0, p.time}, packed, mask, s);
    return std::pair{mask_padding(back.x + s.x), back};
  });
  const auto [sum, back] = f(seq(), mask);
  expect_values(sum, {11, 22, 0, 6, 0, 0, 44, 55, 66});
  EXPECT_EQ(back.time, time);
  EXPECT_EQ(back.x.dims(), (Dims{batch, time}));
}

TEST_P(PackNestedTest, MakesTheDimsThatPackMakes) {
  const auto f = run([](const Seq& s, const Tensor& mask) {
    const auto [p, packed] = pack_nested(s, mask);
    return mask_padding(pack(s.x, mask, {mask.dims()[0]}, packed) + p.x);
  });
  expect_values(f(seq(), mask), {2, 4, 0, 8, 10, 12});
}

struct Padded {
  Tensor x;
  Dim time;
  Tensor y;
  Dim after;
};

TEST_P(PackNestedTest, DimsThatWereComputedFromOthersStaySo) {
  const Padded start{seq().x, time, ones({batch, time + 1}), time + 1};
  const auto f = run([](const Padded& s, const Tensor& mask) {
    const auto [p, packed] = pack_nested(s, mask);
    const Padded back = unpack_nested(Padded{p.x, p.time, p.y * 2.0, p.after}, packed, mask, s);
    return std::tuple{pad(p.x, p.time, 0, 1, 0.0, p.time + 1) + p.y,
                      sum(back.y + s.y, {back.after}), back};
  });
  const auto [in_packed, sums, back] = f(start, mask);
  expect_values(mask_padding(in_packed), {2, 3, 1, 0, 5, 6, 7, 1});
  expect_values(sums, {9, 4, 12});
  EXPECT_EQ(back.after, time + 1);
}

TEST_P(PackNestedTest, ADimThatHasChangedBecomesANewOne) {
  const auto longer = run([](const Seq& s, const Tensor& mask) {
    const auto [p, packed] = pack_nested(s, mask);
    const Dim next = p.time + 1;
    return unpack_nested(Seq{pad(p.x, p.time, 1, 0, 9.0, next), next}, packed, mask, s);
  });
  const Seq a = longer(seq(), mask);
  expect_values(a.time.lengths(), {3, 1, 4});
  expect_values(mask_padding(a.x), {9, 1, 2, 0, 3, 0, 0, 0, 9, 4, 5, 6});
  const auto wider = run([](const Seq& s, const Tensor& mask) {
    const auto [p, packed] = pack_nested(s, mask);
    const Dim three("beam", 3);
    const Tensor x = expand(sum(p.x, {p.time}), {packed, three});
    return unpack_nested(Seq{x, three}, packed, mask, s);
  });
  const Seq b = wider(Seq{tensor({{1., 2.}, {3., 4.}, {5., 6.}}, {batch, beam}), beam}, mask);
  expect_values(b.time.lengths(), {3, 2, 3});
  EXPECT_EQ(b.x.dims(), (Dims{batch, b.time}));
  expect_values(mask_padding(b.x), {3, 3, 3, 3, 4, 0, 11, 11, 11});
}

TEST_P(PackNestedTest, ExpandsATensorAlongDimsOfTheMaskThatItLacks) {
  const Dim feature("feature", 2);
  const auto f = run([](const Tensor& mask, const Tensor& a, const Tensor& b) {
    const auto [p, packed] = pack_nested(std::tuple{a, b, scalar(7.)}, mask);
    const auto back = unpack_nested(p, packed, mask, std::tuple{a * 10.0, b * 10.0, scalar(8.)});
    return std::tuple{p, packed, back, unpack_nested(p, packed, mask)};
  });
  const Tensor a = tensor({1., 2., 3.}, {batch}), b = tensor({{1., 2.}, {3., 4.}}, {feature, beam});
  const auto [p, packed, back, zeros] = f(of_beams, a, b);
  expect_values(std::get<0>(p), {1, 2, 3, 3});
  EXPECT_EQ(std::get<1>(p).dims(), (Dims{feature, packed}));
  expect_values(std::get<1>(p), {1, 2, 1, 2, 3, 4, 3, 4});
  expect_values(std::get<2>(p), {7});
  EXPECT_EQ(std::get<0>(back).dims(), (Dims{batch, beam}));
  expect_values(std::get<0>(back), {1, 10, 20, 2, 3, 3});
  EXPECT_EQ(std::get<1>(back).dims(), (Dims{feature, batch, beam}));
  expect_values(std::get<1>(back), {1, 20, 10, 2, 1, 2, 3, 40, 30, 4, 3, 4});
  expect_values(std::get<2>(back), {7});
  expect_values(std::get<0>(zeros), {1, 0, 0, 2, 3, 3});
}

TEST_P(PackNestedTest, ExpandsLengthsAlongDimsOfTheMaskThatTheyLack) {
  const auto f = run([](const Seq& s, const Tensor& mask) {
    const auto [p, packed] = pack_nested(s, mask);
    return std::pair{p, unpack_nested(Seq{p.x * 10.0, p.time}, packed, mask, s)};
  });
  const auto [p, back] = f(seq(), of_beams);
  expect_values(p.time.lengths(), {2, 1, 3, 3});
  EXPECT_EQ(back.time, time);
  expect_values(mask_padding(back.x),
                {10, 20, 0, 1, 2, 0, 3, 0, 0, 30, 0, 0, 40, 50, 60, 40, 50, 60});
  const Tensor x = mask_padding(seq().x);
  const auto loss = [&](const Tensor& x) {
    const Seq s{x, x.dims()[1]};
    const auto [p, packed] = pack_nested(s, of_beams);
    return sum(square(unpack_nested(Seq{p.x * p.x, p.time}, packed, of_beams, s).x));
  };
  expect_gradient_of(loss, cast(x, f64), run(grad(loss))(cast(x, f64)), 1e-5);
}

TEST_P(PackNestedTest, ADimOfTheMaskStays) {
  const Tensor frames =
      logical_and(expand(mask, {batch, time}), expand(range(time) != 1, {batch, time}));
  const auto f = run([](const std::pair<Seq, Tensor>& s, const Tensor& mask) {
    const auto [p, packed] = pack_nested(s, mask);
    return std::pair{p, unpack_nested(p, packed, mask, s)};
  });
  const auto [p, back] = f(std::pair{seq(), tensor({7., 8., 9.}, {batch})}, frames);
  expect_values(p.first.x, {1, 4, 6});
  expect_values(p.second, {7, 9, 9});
  EXPECT_EQ(p.first.time, time);
  EXPECT_EQ(back.first.time, time);
  expect_values(mask_padding(back.first.x), {1, 2, 0, 3, 0, 0, 4, 5, 6});
  expect_values(mask_padding(back.second), {7, 7, 0, 8, 0, 0, 9, 9, 9});
}

struct Text {
  Tensor letters;
  Dim of_letters, of_words;
};

TEST_P(PackNestedTest, LengthsThatRunOverOtherLengthsGoWithThem) {
  const Dim words("words", tensor({2, 1}, {beam}));
  const Dim letters("letters", tensor({{1, 2}, {2, 0}}, {beam, words}));
  const Text text{tensor(std::vector<float>{1, 0, 2, 3, 4, 5, 0, 0}, {beam, words, letters}),
                  letters, words};
  const auto f = run([](const Text& text, const Tensor& mask) {
    const Dim beam = mask.dims()[0];
    const auto [p, packed] = pack_nested(text, mask);
    const Text moved = gather_nested(text, tensor({1, 1, 0}, {Dim("three", 3)}), beam);
    return std::tuple{unpack_nested(p, packed, mask, text),
                      sum(p.letters, {p.of_letters, p.of_words}),
                      sum(moved.letters, {moved.of_letters, moved.of_words}),
                      sum(unpack_nested(p, packed, mask).letters)};
  });
  const auto [back, of_packed, moved, rest] = f(text, tensor({false, true}, {beam}));
  EXPECT_EQ(back.of_letters, letters);
  EXPECT_EQ(back.of_words, words);
  expect_values(mask_padding(back.letters), {1, 0, 2, 3, 4, 5, 0, 0});
  expect_values(of_packed, {9});
  expect_values(moved, {9, 9, 6});
  expect_values(rest, {9});
}

TEST_P(PackNestedTest, ErrorsNameTheFunctionAndTheLeaf) {
  const Tensor x = ones({batch});
  const auto packing = run([](const Tensor& x, const Tensor& mask) {
    return pack_nested(std::pair{x, x}, mask);
  });
  EXPECT_EQ(message_of<ShapeError>([&] { packing(x, scalar(true)); }),
            "pack_nested: the mask boolean[] has no dims; give it the dims of the entries");
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        packing(x, tensor({true, false, true}));
      }),
      "pack_nested: the mask boolean[3] has plain sizes, by which tensors of a tree cannot be "
      "told apart; give its axes Dims");
  EXPECT_EQ(message_of<DTypeError>([&] { packing(x, x); }),
            "pack_nested: the mask must be boolean, got f32[batch=3]");
  const Dim feature("feature", 2);
  const auto unpacking = run([](const Tensor& x, const Tensor& mask, const Tensor& backup) {
    const auto [p, packed] = pack_nested(std::pair{x, x}, mask);
    return unpack_nested(p, packed, mask, std::pair{x, backup});
  });
  const std::string type = is_eager() ? "f32[packed=2]" : "f32[packed]";
  EXPECT_EQ(message_of<DTypeError>([&] { unpacking(x, mask, cast(x, f64)); }),
            "unpack_nested: dtypes differ: " + type +
                ", the backup is f64[batch=3]; cast one of them\nof the leaf state.1");
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        unpacking(x, mask, ones({batch, feature}));
      }),
      "unpack_nested: the backup f32[batch=3,feature=2] has the dim feature=2, which neither " +
          type + " nor the mask boolean[batch=3] has\nof the leaf state.1");
  EXPECT_EQ(message_of<StructureError>([&] {
              run([](const Tensor& x, const Tensor& mask) {
                const auto [p, packed] = pack_nested(std::vector{x, x}, mask);
                return unpack_nested(p, packed, mask, std::vector{x});
              })(x, mask);
            }),
            "unpack_nested: state is of size 2 in the tree, and of size 1 in the backup");
}

}  // namespace
}  // namespace reel
