// Groups of parameters, clipping in the update, and gradients of micro-batches.
#include "reel/tests/frontend/optimisers/each_optimiser.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using Groups = std::vector<ParameterGroup>;

struct Model {
  Tensor weight, bias, frozen;
};

bool is_bias(const std::string& path, const Tensor&) { return path.ends_with("bias"); }
bool is_frozen(const std::string& path, const Tensor&) { return path == "frozen"; }

class ParameterGroupsTest : public InEveryMode {
 protected:
  /// Returns the model after three steps.
  template <class Optimiser>
  Model trained(Optimiser optimiser, Model model) {
    const Model gradient{tensor({0.5, -1.0}), tensor({2.0, 3.0}), tensor({1.0, 1.0})};
    const auto step = this->run([](Model model, Optimiser o, const Model& gradient) {
      o.update(model, gradient);
      return std::pair{model, o};
    });
    for (int i = 0; i < 3; ++i) std::tie(model, optimiser) = step(model, optimiser, gradient);
    EXPECT_EQ(step.trace_count(), 1);
    return model;
  }
  const Model start{tensor({1.0, 2.0}), tensor({3.0, 4.0}), tensor({5.0, 6.0})};
};

TEST_P(ParameterGroupsTest, WeightDecayNotOnBiases) {
  const AdamWOptions decays{.learning_rate = 0.1, .weight_decay = 0.5};
  AdamWOptions none = decays, groups = decays;
  none.weight_decay = 0;
  groups.groups = {{.contains = is_bias, .weight_decay = 0}};
  const Model a = trained(AdamW(start, decays), start), b = trained(AdamW(start, none), start),
              c = trained(AdamW(start, groups), start);
  expect_same_bits(c.weight, a.weight);
  expect_same_bits(c.bias, b.bias);
  expect_same_bits(c.frozen, a.frozen);
}

TEST_P(ParameterGroupsTest, DecayOfSgdAndLionNotOnBiases) {
  const Groups not_on_biases{{.contains = is_bias, .weight_decay = 0}};
  const auto expect_groups = [&](auto make) {
    const Model a = trained(make(0.5, {}), start), b = trained(make(0, {}), start),
                c = trained(make(0.5, not_on_biases), start);
    expect_same_bits(c.weight, a.weight);
    expect_same_bits(c.bias, b.bias);
    expect_same_bits(c.frozen, a.frozen);
    EXPECT_NE(values_of(a.bias), values_of(b.bias));
  };
  expect_groups([&](double decay, const Groups& groups) {
    return Sgd(start, {.momentum = 0.9, .weight_decay = decay, .groups = groups});
  });
  expect_groups([&](double decay, const Groups& groups) {
    return Lion(start, {.learning_rate = 0.1, .weight_decay = decay, .groups = groups});
  });
}

TEST_P(ParameterGroupsTest, GroupsHaveRatesOfTheirOwn) {
  const auto expect_rates = [&](auto make) {
    const Model whole = trained(make(0.1, {}), start), half = trained(make(0.05, {}), start);
    const Model mixed =
        trained(make(0.1, std::vector<ParameterGroup>{{.contains = is_frozen, .rate = 0},
                                                      {.contains = is_bias, .rate = 0.5}}),
                start);
    expect_same_bits(mixed.weight, whole.weight);
    expect_same_bits(mixed.bias, half.bias);
    expect_same_bits(mixed.frozen, start.frozen);
  };
  expect_rates([&](double rate, const Groups& groups) {
    return Adam(start, {.learning_rate = rate, .groups = groups});
  });
  expect_rates([&](double rate, const Groups& groups) {
    return AdamW(start, {.learning_rate = rate, .weight_decay = 0.5, .groups = groups});
  });
  expect_rates([&](double rate, const Groups& groups) {
    return Sgd(start, {.learning_rate = rate, .momentum = 0.9, .groups = groups});
  });
  expect_rates([&](double rate, const Groups& groups) {
    return RmsProp(start, {.learning_rate = rate, .groups = groups});
  });
  expect_rates([&](double rate, const Groups& groups) {
    return Adagrad(start, {.learning_rate = rate, .groups = groups});
  });
  expect_rates([&](double rate, const Groups& groups) {
    return Lion(start, {.learning_rate = rate, .weight_decay = 0.5, .groups = groups});
  });
}

TEST_P(ParameterGroupsTest, ClippingIsPartOfTheUpdate) {
  const auto by_hand = run([](Model model, const Model& gradient) {
    Sgd sgd(model, {.learning_rate = 0.1});
    sgd.update(model, clip_by_global_norm(gradient, 0.7).first);
    return model;
  });
  const auto in_update = run([](Model model, const Model& gradient) {
    Sgd sgd(model, {.learning_rate = 0.1, .clip_norm = 0.7});
    sgd.update(model, gradient);
    return model;
  });
  const Model a = by_hand(start, start), b = in_update(start, start);
  expect_same_bits(a.weight, b.weight);
  expect_same_bits(a.bias, b.bias);
  const Model small{zeros({2}), tensor({0.5, 0.}), zeros({2})};
  expect_all_close(in_update(start, small).bias, tensor({2.95, 4.}), 1e-6);
}

TEST_P(ParameterGroupsTest, TheLearningRateMayChangeInATrace) {
  const auto step = run([](Model model, const Tensor& rate) {
    Sgd sgd(model, {.groups = {{.contains = is_bias, .rate = 2}}});
    sgd.set_learning_rate(rate);
    sgd.update(model, Model{ones({2}), ones({2}), ones({2})});
    return model;
  });
  const Model after = step(start, scalar(0.25, f64));
  expect_values(after.weight, {0.75, 1.75});
  expect_values(after.bias, {2.5, 3.5});
}
REEL_IN_EVERY_MODE(ParameterGroupsTest);

TEST(ParameterGroupsErrorsTest, NameOptimiserAndGroup) {
  const Model model{ones({1}), ones({1}), ones({1})};
  EXPECT_EQ(message_of<ArgumentError>([&] { AdamW(model, {.groups = {{}}}); }),
            "AdamW: a group needs the function `contains`");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              AdamW(model, {.groups = {{.contains = [](const std::string& path, const Tensor&) {
                              return path == "biases";
                            }}}});
            }),
            "AdamW: group 0 contains no parameter that is not in a group before it; the parameters "
            "are weight, bias, frozen");
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { Adagrad(model, {.groups = {{.contains = is_bias, .weight_decay = 0}}}); }),
            "Adagrad: a group has a weight_decay, but Adagrad has none; use AdamW");
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { Adam(model, {.groups = {{.contains = is_bias, .weight_decay = 0.5}}}); }),
            "Adam: a group has a weight_decay, but Adam has none; use AdamW");
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { Adam(model, {.groups = {{.contains = is_bias, .rate = -1}}}); }),
            "Adam: the rate of a group must be a number that is not negative, got -1");
  EXPECT_EQ(message_of<ArgumentError>([&] { RmsProp(model, {.clip_norm = -1}); }),
            "RmsProp: clip_norm must be a number that is not negative, got -1");
}

/// A sum of the losses of rows; `counts` is 0 for rows that do not count.
Weighted loss_of(const Model& model, const Tensor& x, const Tensor& counts) {
  const Tensor y = sum(x * model.weight + model.bias, 1) * counts;
  return {sum(square(y)), sum(counts)};
}

class GradientSumTest : public InEveryMode {};

TEST_P(GradientSumTest, HasTheBitsOfOneBatchIfSumsAreExact) {
  const Model model{tensor({1.0, 2.0}), tensor({3.0, -1.0}), tensor({4.0})};
  const Tensor x = tensor({{1., 2.}, {3., -4.}, {5., 6.}, {-7., 8.}, {0., 2.}});
  const Tensor counts = tensor({1., 0., 1., 1., 1.});
  const auto whole = run([](const Model& model, const Tensor& x, const Tensor& counts) {
    GradientSum<Model> sum(model);
    sum.add(loss_of, model, x, counts);
    return sum.mean();
  })(model, x, counts);
  const auto mean_loss = [](const Model& model, const Tensor& x, const Tensor& counts) {
    const Weighted loss = loss_of(model, x, counts);
    return loss.total / loss.weight;
  };
  const auto one_batch = value_and_grad(mean_loss)(model, x, counts);
  expect_same_bits(whole.first, one_batch.first);
  expect_same_bits(whole.second.weight, one_batch.second.weight);
  const auto add =
      run([](GradientSum<Model> sum, const Model& model, const Tensor& x, const Tensor& counts) {
        sum.add(loss_of, model, x, counts);
        return sum;
      });
  for (const std::vector<std::int64_t>& cuts :
       {std::vector<std::int64_t>{0, 2, 5}, {0, 1, 2, 3, 4, 5}, {0, 4, 5}}) {
    GradientSum<Model> sum(model);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      sum = add(std::move(sum), model, slice(x, 0, cuts[i], cuts[i + 1]),
                slice(counts, 0, cuts[i], cuts[i + 1]));
    const auto [loss, gradient] = sum.mean();
    expect_same_bits(loss, whole.first);
    expect_same_bits(gradient.weight, whole.second.weight);
    expect_same_bits(gradient.bias, whole.second.bias);
    expect_values(gradient.frozen, {0});
  }
}

TEST_P(GradientSumTest, MeanOfWeightZeroIsZero) {
  const Model model{ones({2}), ones({2}), ones({1})};
  const auto [loss, gradient] = run([](const Model& model) {
    GradientSum<Model> sum(model);
    sum.add(loss_of, model, ones({3, 2}), zeros({3}));
    return sum.mean();
  })(model);
  expect_values(loss, {0});
  expect_values(gradient.weight, {0, 0});
}

TEST_P(GradientSumTest, NamesTheDtypeThatDiffers) {
  const auto f = run([](const Tensor& w) {
    GradientSum<Tensor> losses(w);
    losses.add([](const Tensor& w) { return Weighted{sum(square(w)), scalar(2., f64)}; }, w);
    return losses.mean();
  });
  EXPECT_EQ(message_of<DTypeError>([&] { f(ones({2}, f64)); }),
            "GradientSum::add: f returned the total f64[] and the weight f64[], but the sums are "
            "f32; return both in one dtype, and give the constructor this dtype, as in "
            "GradientSum<Model>(model, f64)");
}

TEST_P(GradientSumTest, SumOfTableRowsIsDense) {
  const Dim vocab("vocab", 4), feature("feature", 2), batch("batch", 3);
  struct Words {
    EmbeddingTable table;
  };
  const Words words{EmbeddingTable(ones({vocab, feature}))};
  const auto gradient = run([&](const Words& words) {
    GradientSum<Words> sum(words);
    for (const int row : {1, 3, 1})
      sum.add(
          [&](const Words& w, const Tensor& rows) {
            return Weighted{reel::sum(gather(w.table, rows)), scalar(1.0)};
          },
          words, full({batch}, row, i32));
    return sum.mean().second.table.dense();
  })(words);
  expect_values(gradient, {0, 0, 2, 2, 0, 0, 1, 1});
}

struct Steps {
  TensorArray weights, counts;
  Tensor scale;
};

Steps steps_of(DType dtype) {
  return {TensorArray::unstack(cast(tensor({1, 2, 3}), dtype), 0),
          TensorArray::unstack(tensor({4, 5}), 0), scalar(1.)};
}

TEST_P(GradientSumTest, RefusesArraysOfFloatsAndKeepsZerosForArraysOfIntegers) {
  const auto f = run([](const Steps& steps, const Tensor& x) {
    GradientSum<Steps> sum(steps);
    const auto loss = [](const Steps& s, const Tensor& x) {
      return Weighted{s.scale * x, scalar(1.)};
    };
    for (const double factor : {1., 3.}) sum.add(loss, steps, x * factor);
    return sum.mean().second;
  });
  EXPECT_EQ(
      message_of<ArgumentError>([&] { f(steps_of(f32), scalar(3.)); }),
      "GradientSum: weights is a TensorArray, list of f32[]; stack() it, or hold its elements "
      "in a std::vector<Tensor>");
  const Steps gradient = f(steps_of(i64), scalar(3.));
  expect_values(gradient.scale, {6});
  expect_values(gradient.weights.stack(), {0, 0, 0});
  expect_values(gradient.counts.stack(), {0, 0});
}

TEST(OptimisersOfArraysTest, ArraysOfFloatsAreRefusedAndOthersStayUnchanged) {
  for_each_optimiser([](const std::string& name, const auto& make) {
    EXPECT_EQ(
        message_of<ArgumentError>([&] { make(steps_of(f32), Groups{}); }),
        name.substr(0, name.find(' ')) +
            ": weights is a TensorArray, list of f32[]; stack() it, or hold its elements in a "
            "std::vector<Tensor>");
    const Steps before = steps_of(i64);
    Steps now = before;
    auto optimiser = make(now, Groups{});
    optimiser.update(now, before);
    expect_values(now.weights.stack(), {1, 2, 3});
    EXPECT_LT(now.scale.item<float>(), 1) << name;
  });
}
REEL_IN_EVERY_MODE(GradientSumTest);

}  // namespace
}  // namespace reel
