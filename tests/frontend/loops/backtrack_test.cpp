// backtrack: the sequences of hypotheses compared with loops in C++, lengths, padding, gradients,
// errors.
#include <map>
#include <random>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class BacktrackTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, beam{"beam", 2}, steps{"steps", 3};
  const Tensor labels =
      tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}, {steps, batch, beam});
  const Tensor backrefs =
      tensor({1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0}, {steps, batch, beam});
};
REEL_IN_EVERY_MODE(BacktrackTest);

// Entry 0 ends with 13, from 7 at place 0, from 2 at place 1; and with 14, from 8, from 1. Entry 1:
// 15 from 10 from 3; 16 from 9 from 3. Entry 2: 17 and 18, both from 11 from 6.
TEST_P(BacktrackTest, AllHypothesesOfTheLastStepInOrder) {
  const Tensor all = run([&](const Tensor& labels, const Tensor& backrefs) {
    return backtrack(labels, backrefs, steps, beam);
  })(labels, backrefs);
  EXPECT_EQ(all.dims(), (Dims{steps, batch, beam}));
  expect_values(all, {2, 1, 3, 3, 6, 6, 7, 8, 10, 9, 11, 11, 13, 14, 15, 16, 17, 18});
}

TEST_P(BacktrackTest, OneHypothesisOfEachEntryOrSome) {
  const auto found = [&](const Tensor& hypotheses) {
    return run([&](const Tensor& labels, const Tensor& backrefs, const Tensor& hypotheses) {
      return backtrack(labels, backrefs, steps, beam, hypotheses);
    })(labels, backrefs, hypotheses);
  };
  const Tensor one = found(tensor({0, 1, 0}, {batch}));
  EXPECT_EQ(one.dims(), (Dims{steps, batch}));
  expect_values(one, {2, 3, 6, 7, 9, 11, 13, 16, 17});
  expect_values(found(scalar(1)), {1, 3, 6, 8, 9, 11, 14, 16, 18});
  const Dim best("best", 3);
  const Tensor some = found(tensor({1, 0, 1, 0, 0, 0, 1, 1, 0}, {batch, best}, i64));
  EXPECT_EQ(some.dims(), (Dims{steps, batch, best}));
  expect_values(some, {1,  2,  1,  3,  3,  3,  6,  6,  6,  8,  7,  8,  10, 10,
                       10, 11, 11, 11, 14, 13, 14, 15, 15, 15, 18, 18, 17});
}

struct Kept {
  Tensor label, score, temperature;
};

/// Random beams with merged hypotheses, over searches of given lengths.
TEST_P(BacktrackTest, TreesAlongRaggedStepsAgainstALoopOfCpp) {
  const Dim entries("batch", 4), wide("beam", 3);
  const std::vector<int> lengths{5, 0, 3, 1};
  const int most = 5;
  std::mt19937 random(1);
  const Dim ragged("steps", tensor(lengths, {entries}));
  for (const double padding : {7., kNan}) {
    std::vector<int> from, label;
    std::vector<double> score, temperature;
    for (int b = 0; b < 4; ++b)
      for (int t = 0; t < most; ++t) {
        temperature.push_back(t < lengths[b] ? 10 * b + t : padding);
        for (int k = 0; k < 3; ++k) {
          from.push_back(t < lengths[b] ? static_cast<int>(random() % 3) : 1000);
          label.push_back(t < lengths[b] ? static_cast<int>(random() % 50) : 99);
          score.push_back(t < lengths[b] ? label.back() / 8. : padding);
        }
      }
    const Dims dims{entries, ragged, wide};
    const Kept kept{tensor(label, dims), tensor(score, dims),
                    tensor(temperature, {entries, ragged})};
    const Kept found = run([&](const Kept& kept, const Tensor& from) {
      return backtrack(kept, from, kept.label.dim("steps"), from.dim("beam"));
    })(kept, tensor(from, dims));
    std::vector<double> expected(4 * most * 3, 0), scores = expected, temperatures(4 * most, 0);
    for (int b = 0; b < 4; ++b)
      for (int k = 0; k < 3; ++k) {
        int place = k;
        for (int t = lengths[b]; t-- > 0;) {
          const int at = (b * most + t) * 3 + place;
          expected[(b * most + t) * 3 + k] = label[at];
          scores[(b * most + t) * 3 + k] = label[at] / 8.;
          temperatures[b * most + t] = 10 * b + t;
          place = from[at];
        }
      }
    expect_values(transpose(found.label, dims), expected);
    expect_values(transpose(found.score, dims), scores);
    expect_values(transpose(found.temperature, {entries, ragged}), temperatures);
  }
}

TEST_P(BacktrackTest, ArraysAsAWhileLoopPushesThem) {
  const auto f = run([&](const Tensor& labels, const Tensor& backrefs) {
    struct State {
      Tensor t;
      TensorArray labels, backrefs;
    };
    const TensorType element(i32, {batch, beam});
    const State s =
        while_loop([&](const State& s) { return s.t < 3; },
                   [&](const State& s) {
                     return State{s.t + 1, s.labels.push_back(gather(labels, s.t, steps)),
                                  s.backrefs.push_back(gather(backrefs, s.t, steps))};
                   },
                   State{scalar(0), TensorArray(element), TensorArray(element)});
    const std::map<std::string, TensorArray> ys{{"labels", s.labels}};
    return std::pair{backtrack(ys, s.backrefs, beam).at("labels").stack(steps),
                     backtrack(std::pair{s.labels, s.t}, s.backrefs, beam, zeros({batch}, i32))};
  });
  const auto [all, best] = f(labels, backrefs);
  expect_values(all, {2, 1, 3, 3, 6, 6, 7, 8, 10, 9, 11, 11, 13, 14, 15, 16, 17, 18});
  expect_values(best.first.stack(steps), {2, 3, 6, 7, 10, 11, 13, 15, 17});
  expect_values(best.second, {3});
}

TEST_P(BacktrackTest, GradientsGoToTheTakenElements) {
  const Dim ragged("steps", tensor({3, 1, 2}, {batch}));
  const Tensor from =
      tensor({0, 0, 1, 0, 1, 1, 1, 0, 9, 9, 9, 9, 1, 1, 0, 1, 9, 9}, {batch, ragged, beam});
  const auto loss = [&](const Tensor& scores) {
    const Tensor found = backtrack(scores, from, ragged, beam);
    return sum(square(found)) + sum(found * found * found, {ragged, batch, beam});
  };
  const Tensor scores =
      tensor(std::vector<double>{1, 2, 3, 4, 5, 6, -1, -2, 0, 0, 0, 0, .1, .2, .3, .4, 0, 0},
             {batch, ragged, beam});
  const Tensor gradient = run(grad(loss))(scores);
  expect_gradient_of(loss, scores, gradient);
  // In entry 0 both hypotheses come from place 1 of the middle step and place 0 of the first: 2 (2
  // x + 3 x²).
  const std::vector<double> values = values_of(gradient);
  EXPECT_NEAR(values[0], 10, 1e-12);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[2], 0);
  EXPECT_NEAR(values[3], 2 * (8 + 48), 1e-12);
}

TEST_P(BacktrackTest, NoStepsAndNoEntries) {
  const auto f = run([&](const Tensor& labels, const Tensor& backrefs) {
    return backtrack(labels, backrefs, labels.dims()[0], beam);
  });
  const Dim none("steps", 0), nobody("batch", 0);
  EXPECT_EQ(str(f(zeros({none, batch, beam}), zeros({none, batch, beam}, i32)).type()),
            "f32[steps=0,batch=3,beam=2]");
  EXPECT_EQ(str(f(zeros({steps, nobody, beam}), zeros({steps, nobody, beam}, i32)).type()),
            "f32[steps=3,batch=0,beam=2]");
}

TEST_P(BacktrackTest, RefusesOperandsWithoutTheirDims) {
  const auto f = run([&](const Tensor& labels, const Tensor& backrefs) {
    return backtrack(std::pair{labels, labels}, backrefs, steps, beam);
  });
  EXPECT_EQ(message_of<DTypeError>([&] { f(labels, cast(backrefs, f32)); }),
            "backtrack: backrefs are places in the beam, which are integers, got "
            "f32[steps=3,batch=3,beam=2]");
  EXPECT_EQ(message_of<ShapeError>([&] { f(labels, gather(backrefs, scalar(0), beam)); }),
            "backtrack: backrefs i32[steps=3,batch=3] has no dim beam=2");
  EXPECT_EQ(message_of<ShapeError>([&] { f(gather(labels, scalar(0), steps), backrefs); }),
            "backtrack: ys.0 i32[batch=3,beam=2] has no dim steps=3");
  const Dim apart("steps", tensor({3, 1, 2, 3, 0, 1}, {batch, beam}));
  EXPECT_EQ(message_of<ShapeError>([&] {
              backtrack(labels, zeros({batch, beam, apart}, i32), apart, beam);
            }),
            "backtrack: steps[batch=3,beam=2] has a length for each hypothesis along beam=2, but "
            "hypotheses descend from each other; give it lengths over the entries that are "
            "searched separately");
  EXPECT_EQ(message_of<ShapeError>([&] { backtrack(labels, backrefs, steps, Dim(2)); }),
            "backtrack: beam is the plain size 2; give a Dim that backrefs "
            "i32[steps=3,batch=3,beam=2] has");
  EXPECT_EQ(message_of<ShapeError>([&] { backtrack(labels, backrefs, steps, beam, backrefs); }),
            "backtrack: hypotheses i32[steps=3,batch=3,beam=2] have the dim steps=3; they are "
            "those of the last step");
  EXPECT_EQ(message_of<StructureError>(
                [&] { backtrack(TensorArray::unstack(labels, steps), backrefs, steps, beam); }),
            "backtrack: ys is an array; ys are tensors with steps=3, or arrays where backrefs are "
            "one");
  EXPECT_EQ(message_of<ArgumentError>([&] { backtrack(labels, Tensor(), steps, beam); }),
            "backtrack: backrefs is an empty Tensor: assign to it first");
}

TEST_P(BacktrackTest, AnotherDimOfTheNameAndPlacesBeyondAllI32) {
  const Dim steps("steps", 2), beam("beam", 2), other("beam", 2);
  const Tensor backrefs = tensor({{0, 0}, {1, 0}}, {steps, beam});
  const auto f = run([&](const Tensor& labels, const Tensor& hypotheses) {
    return backtrack(labels, backrefs, steps, beam, hypotheses);
  });
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(tensor({{1, 2}, {3, 4}}, {steps, other}), scalar(0, i64));
            }),
            "backtrack: ys i32[steps=2,beam=2] has another dim called beam than the beam that is "
            "given, beam=2; the two called beam are not one Dim: use one Dim for both, as "
            "x.dim(\"beam\") gives it");
  const Tensor labels = tensor({{1, 2}, {3, 4}}, {steps, beam});
  expect_values(f(labels, scalar(0, i64)), {2, 3});
  EXPECT_THROW(f(labels, scalar(std::int64_t{1} << 32, i64)), IndexError);
}

TEST_P(BacktrackTest, StepsMayHaveTheNameOfTheBeam) {
  const Dim steps("beam", 2), beam("beam", 3);
  const Tensor backrefs = tensor({{0, 1, 2}, {1, 0, 2}}, {steps, beam}),
               labels = tensor({{1, 2, 3}, {4, 5, 6}}, {steps, beam});
  const auto f =
      run([&](const Tensor& labels) { return backtrack(labels, backrefs, steps, beam); });
  expect_values(f(labels), {2, 1, 3, 4, 5, 6});
  const auto shared = run([&](const Tensor& times) {
    return backtrack(times, backrefs, steps, beam, tensor({1}, {Dim("best", 1)}));
  });
  expect_values(shared(tensor({7, 8}, {steps})), {7, 8});
}

TEST_P(BacktrackTest, APlaceThatIsNotInTheBeam) {
  const auto f =
      run([&](const Tensor& backrefs) { return backtrack(labels, backrefs, steps, beam); });
  for (const int place : {2, -1}) {
    const Tensor wrong = where(range(steps) == 1, full({}, place, i32), backrefs);
    const std::string message = message_of<IndexError>([&] { f(wrong); });
    EXPECT_NE(message.find(str("index ", place)), std::string::npos) << message;
    EXPECT_NE(message.find("backtrack"), std::string::npos) << message;
  }
}

TEST_P(BacktrackTest, APlaceBehindAnEntrysOwnEnd) {
  const Dim batch("batch", 2), steps("steps", 2), beam("beam", tensor({3, 1}, {batch}));
  // Padding is NaN.
  const Tensor labels =
      tensor({1., 2., 3., 4., 5., 6., 7., kNan, kNan, 8., kNan, kNan}, {batch, steps, beam});
  const auto places = [&](int of_second) {
    return tensor({0, 0, 0, 2, 1, 0, 0, 9, 9, of_second, 9, 9}, {batch, steps, beam});
  };
  const auto found = run([&](const Tensor& labels, const Tensor& backrefs) {
    return mask_padding(backtrack(labels, backrefs, steps, beam));
  });
  expect_values(found(labels, places(0)), {3, 2, 1, 7, 0, 0, 4, 5, 6, 8, 0, 0});
  // This entry has one hypothesis; the padding beside it is not one.
  EXPECT_NE(message_of<IndexError>([&] {
              found(labels, places(2));
            }).find("is out of range for axis beam"),
            std::string::npos);
  const auto chosen = run([&](const Tensor& hypotheses) {
    return backtrack(labels, places(0), steps, beam, hypotheses);
  });
  expect_values(chosen(tensor({2, 0}, {batch})), {1, 7, 6, 8});
  EXPECT_NE(message_of<IndexError>([&] {
              chosen(tensor({2, 2}, {batch}));
            }).find("is out of range for axis beam"),
            std::string::npos);
}

}  // namespace
}  // namespace reel
