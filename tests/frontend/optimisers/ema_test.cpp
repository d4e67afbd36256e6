#include <cmath>

#include "reel/frontend/optimisers/ema.h"

#include "reel/tests/modes.h"

namespace reel {
namespace {

using EmaTest = InEveryMode;
REEL_IN_EVERY_MODE(EmaTest);

struct Model {
  Tensor weight, count;
  std::vector<Tensor> more;
  None none;
};

TEST_P(EmaTest, IsTheWeightedMeanOfAllUpdates) {
  const auto at = [](double value) { return tensor({value, -value}, {}, f64); };
  Ema ema(at(100), {.decay = 0.9});
  const auto update = run([](Ema<Tensor> e, const Tensor& p) {
    e.update(p);
    return e;
  });
  double sum = 0, weights = 0;
  for (const double value : {1.0, 4.0, -2.0, 0.0, 7.0}) {
    ema = update(ema, at(value));
    sum = 0.9 * sum + value;
    weights = 0.9 * weights + 1;
    expect_values(ema.average(), {sum / weights, -sum / weights}, 1e-13);
  }
  EXPECT_EQ(ema.step().item<std::int64_t>(), 5);
  EXPECT_EQ(update.trace_count(), 1);
}

TEST_P(EmaTest, KeepsDtypesAndTakesIntegersAsTheyAre) {
  const auto model = [](double value, int count) {
    return Model{full({2}, value), full({1}, count, i32), {full({3}, value, f64)}, {}};
  };
  Ema ema(model(9, 1), {.decay = 0.5});
  const auto update = run([](Ema<Model> e, const Model& m) {
    e.update(m);
    return e;
  });
  ema = update(update(ema, model(0, 2)), model(3, 3));
  expect_values(ema.average().weight, {2, 2}, 1e-6);
  expect_values(ema.average().more[0], {2, 2, 2}, 1e-14);
  expect_values(ema.average().count, {3});
  EXPECT_EQ(ema.average().weight.dtype(), f32);
}

TEST(EmaOfArraysTest, ArraysOfFloatsAreRefusedAndOthersCopied) {
  const auto of = [](DType dtype, int first) {
    return std::pair{TensorArray::unstack(cast(tensor({first, 2}), dtype), 0),
                     full({1}, first, f32)};
  };
  EXPECT_EQ(message_of<ArgumentError>([&] { Ema(of(f64, 1)); }),
            "Ema: 0 is a TensorArray, list of f64[]; stack() it, or hold its elements in a "
            "std::vector<Tensor>");
  Ema ema(of(i32, 1), {.decay = 0.5});
  ema.update(of(i32, 6));
  expect_values(ema.average().first.stack(), {6, 2});
  expect_values(ema.average().second, {6});
}

TEST_P(EmaTest, WithoutDecayIsTheLastOfThem) {
  Ema ema(full({1}, 5.0), {.decay = 0});
  const auto update = run([](Ema<Tensor> e, const Tensor& p) {
    e.update(p);
    return e;
  });
  for (const double value : {1.0, 2.5}) {
    ema = update(ema, full({1}, value));
    expect_values(ema.average(), {value}, 0);
  }
}

TEST(EmaTest, BeforeTheFirstUpdateItIsTheParameters) {
  const Tensor p = tensor({1.0, 2.0});
  expect_same_bits(Ema(p).average(), p);
}

TEST(EmaTest, ErrorsNameTheLeavesThatDiffer) {
  Ema ema(Model{ones({2}), ones({1}, i32), {ones({3})}, {}});
  EXPECT_EQ(message_of<ShapeError>([&] {
              ema.update({ones({3}), ones({1}, i32), {ones({3})}, {}});
              return 0;
            }),
            "Ema: types differ from those of the parameters\n"
            "  weight: f32[3], its average f32[2]");
  EXPECT_EQ(message_of<StructureError>([&] {
              ema.update({ones({2}), ones({1}, i32), {}, {}});
              return 0;
            }),
            "Ema: the parameters have another structure than those that it was made for\n"
            "  more: of size 0, when it was made of size 1");
  EXPECT_EQ(message_of<ArgumentError>([&] { return Ema(ones({1}), {.decay = 1}); }),
            "Ema: decay must be in [0, 1), got 1");
}

TEST(EmaTest, ParametersBeforeTheFirstUpdateMayBeNaN) {
  const std::vector<Tensor> before{tensor({std::nan(""), 1.})}, after{tensor({2., 3.})};
  Ema ema(before);
  ema.update(after);
  expect_values(ema.average()[0], {2, 3});
}

}  // namespace
}  // namespace reel
