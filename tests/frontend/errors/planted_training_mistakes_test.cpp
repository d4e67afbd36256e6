// Mistakes as new users make them, with batches, losses, gradients and training steps. Each error
// names the function, its arguments, the rule and the repair, and is compared as a whole.
#include <utility>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Deep {
  std::vector<Linear> layers;
};
struct Rows {
  Tensor x;
};

class PlantedTrainingMistakes : public ::testing::Test {
 protected:
  const Dim batch{"batch", 2}, time{"time", tensor({3, 2}, {batch})}, feature{"feature", 4},
      classes{"classes", 3};
  const Tensor logits = ones({batch, time, classes});
  Deep one_layer() const { return {{Linear::init(feature, classes)}}; }
};

TEST_F(PlantedTrainingMistakes, ValuesOfRowsWithoutPadding) {
  EXPECT_EQ(message_of<ShapeError>([&] {
              tensor({1, 2, 3, 4, 5}, {batch, time});
            }),
            "tensor: 5 values given for i32[batch=2,time[batch=2]], which has 6 elements, padding "
            "included; rows without padding: ragged(rows, dims)");
}

TEST_F(PlantedTrainingMistakes, LossOverAnotherDim) {
  const Tensor labels = zeros({batch, time}, i32);
  EXPECT_EQ(message_of<ShapeError>([&] { cross_entropy(logits, labels, feature); }),
            "cross_entropy: logits f32[batch=2,time[batch=2],classes=3] have no dim feature=4, the "
            "classes");
  EXPECT_EQ(message_of<ShapeError>([&] { kl_divergence(logits, logits, Dim("classes", 3)); }),
            "kl_divergence: p_logits f32[batch=2,time[batch=2],classes=3] have no dim classes=3, "
            "the classes; the two called classes are not one Dim: use one Dim for both, as "
            "x.dim(\"classes\") gives it");
}

TEST_F(PlantedTrainingMistakes, LabelsOverAnotherTime) {
  const Tensor labels = zeros({batch, Dim("time", 3)}, i32);
  EXPECT_EQ(message_of<ShapeError>([&] { cross_entropy(logits, labels, classes); }),
            "cross_entropy: targets must have the dims of logits but the classes, "
            "[batch=2,time[batch=2]]: logits f32[batch=2,time[batch=2],classes=3], classes "
            "classes=3, targets i32[batch=2,time=3]; the two called time are not one Dim: use one "
            "Dim for both, as x.dim(\"time\") gives it");
}

TEST_F(PlantedTrainingMistakes, LabelsAsFloats) {
  const Tensor labels = zeros({batch, time});
  EXPECT_EQ(message_of<ShapeError>([&] { cross_entropy(logits, labels, classes); }),
            "cross_entropy: targets must have the dims of logits where they are probabilities: "
            "f32[batch=2,time[batch=2],classes=3], targets f32[batch=2,time[batch=2]]; numbers of "
            "classes are integers: cast(targets, i32)");
}

TEST_F(PlantedTrainingMistakes, LossOfEachEntry) {
  const auto mistake = [&] {
    return value_and_grad([&](const Tensor& x) {
      return cross_entropy(x, zeros({batch, time}, i32), classes,
                           {.reduction = LossReduction::none});
    })(logits);
  };
  EXPECT_EQ(message_of<ShapeError>(mistake),
            "value_and_grad: the function must return a scalar, got f32[batch=2,time[batch=2]]; "
            "reduce it, with sum or mean");
}

TEST_F(PlantedTrainingMistakes, LayerAddedAfterTheOptimiser) {
  const auto mistake = [&] {
    Deep model = one_layer();
    Adam<Deep> adam(model);
    model.layers.push_back(Linear::init(classes, feature));
    adam.update(model, model);
    return adam.step();
  };
  EXPECT_EQ(message_of<StructureError>(mistake),
            "Adam: the parameters have another structure than those that it was made for\n"
            "  layers: of size 2, when it was made of size 1");
}

TEST_F(PlantedTrainingMistakes, GradientOfAnotherDepth) {
  const auto mistake = [&] {
    Deep model = one_layer();
    Adam<Deep> adam(model);
    adam.update(model, Deep{});
    return adam.step();
  };
  EXPECT_EQ(message_of<StructureError>(mistake),
            "Adam: the gradient has another structure than the parameters\n"
            "  layers: of size 1, in the gradient of size 0");
}

TEST_F(PlantedTrainingMistakes, BatchesWithoutRows) {
  const Rows data{ones({batch, feature})};
  EXPECT_EQ(message_of<ArgumentError>([&] { Batches batches(data, batch, {.rows = 0}); }),
            "Batches: give the size of a batch: {.rows = 32}, or {.tokens = 4096}");
}

TEST_F(PlantedTrainingMistakes, SizeOfARaggedDimInATrace) {
  const auto mistake = [&] {
    return jit([](const Tensor& x) { return zeros({x.dim("time").size()}); })(logits);
  };
  EXPECT_EQ(message_of<TraceError>(mistake),
            "the size of dim time[batch=2] is not known while tracing; use dim.lengths(), or "
            "range(dim)");
}

TEST_F(PlantedTrainingMistakes, ParametersThatATraceChanged) {
  Tensor weight = ones({3});
  const auto step = jit([&](const Tensor& x) { return weight = weight - x; });
  step(ones({3}));
  EXPECT_EQ(
      message_of<TraceError>([&] { return weight + 1.0; }),
      "add: a value of type f32[3] that sub made in jit \"jit\" is used outside of it; values "
      "leave a body only through its state or outputs, a branch or a traced function only "
      "through its result");
}

TEST_F(PlantedTrainingMistakes, StateOfIntegersInAScanOverFloats) {
  const auto mistake = [&] {
    return scan(Scan{.spatial_dim = time,
                     .initial = zeros({batch}, i32),
                     .xs = logits,
                     .body =
                         [&](const Tensor& x, const Tensor& s) {
                           const Tensor next = s + sum(x, classes);
                           return std::pair{next, next};
                         },
                     .name = "totals"})
        .state;
  };
  EXPECT_EQ(message_of<DTypeError>(mistake),
            "add: dtypes differ: lhs i32[batch=2], rhs f32[batch=2]; cast one of them, e.g. "
            "cast(rhs, i32)\nin iteration 0 of scan \"totals\"");
}

TEST_F(PlantedTrainingMistakes, NaNOfAParameterNamesOptimiserAndParameter) {
  const auto mistake = [&] {
    Deep model = one_layer(), gradient = model;
    gradient.layers[0].weight = log(zeros({feature, classes}) - 1.0);
    Adam adam(model);
    const DetectNan guard;
    adam.update(model, gradient);
    return adam.step();
  };
  EXPECT_EQ(message_of<NumericsError>(mistake),
            "mul: its result, f32[feature=4,classes=3], is nan at [feature=0, classes=0], the "
            "first of 12 such elements; operand 0, f32[feature=4,classes=3], is nan at "
            "[feature=0, classes=0] already\nin Adam::update of layers.0.weight");
}

}  // namespace
}  // namespace reel
