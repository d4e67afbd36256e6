// Frozen groups of parameters: no step changes a bit of them, and their gradient does not count.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reel/tests/frontend/optimisers/each_optimiser.h"
#include "reel/tests/modes.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

bool is_of_encoder(const std::string& path, const Tensor&) { return path.starts_with("encoder"); }
const Groups kEncoder{{.contains = is_of_encoder, .frozen = true}};

struct Encoder {
  Tensor weight, bias;
  int layers = 2;
};
struct Head {
  Tensor weight, bias;
};
struct Model {
  Tensor count;  // i32
  Encoder encoder;
  Head head;
};

Model start() {
  return {tensor({7, 8}),
          {tensor({1.0, -0.0}), tensor({1e-42, 3.0})},
          {tensor({1.0, 2.0}), tensor({3.0, 4.0})}};
}
Model gradient_with(double of_encoder) {
  return {zeros({2}, i32),
          {full({2}, of_encoder), full({2}, of_encoder)},
          {tensor({0.5, -1.0}), tensor({2.0, 3.0})}};
}

void expect_same_encoder(const Model& a, const Model& b) {
  expect_same_bits(a.encoder.weight, b.encoder.weight);
  expect_same_bits(a.encoder.bias, b.encoder.bias);
}
void expect_same_head(const Head& a, const Head& b) {
  expect_same_bits(a.weight, b.weight);
  expect_same_bits(a.bias, b.bias);
}

class FrozenParametersTest : public InEveryMode {
 protected:
  /// Returns parameters and optimiser after three steps.
  template <class Params, class Optimiser>
  std::pair<Params, Optimiser> after_steps(Params p, Optimiser o, const Params& gradient) {
    const auto step = this->run([](Params p, Optimiser o, const Params& gradient) {
      o.update(p, gradient);
      return std::pair{p, o};
    });
    for (int i = 0; i < 3; ++i) std::tie(p, o) = step(p, o, gradient);
    EXPECT_EQ(step.trace_count(), 1);
    return {p, o};
  }
};
REEL_IN_EVERY_MODE(FrozenParametersTest);

TEST_P(FrozenParametersTest, KeepTheirBitsAndTheOthersTrainAsIfAlone) {
  for_each_optimiser([&](const char* name, const auto& make) {
    SCOPED_TRACE(name);
    const Model from = start();
    const Head head = after_steps(from.head, make(from.head, {}), gradient_with(0).head).first;
    for (const double of_encoder :
         {5.0, double{NAN}, -double{INFINITY}, double{std::numeric_limits<float>::max()}}) {
      const auto [to, optimiser] =
          after_steps(from, make(from, kEncoder), gradient_with(of_encoder));
      expect_same_encoder(to, from);
      expect_same_head(to.head, head);
      expect_values(to.count, {7, 8});
      expect_values(optimiser.step(), {3});
    }
  });
}

TEST_P(FrozenParametersTest, HaveMomentsOfZero) {
  const Model from = start();
  const AdamW<Model> made(from, {.groups = kEncoder});
  const AdamW<Model> after = after_steps(from, made, gradient_with(5)).second;
  const std::vector<std::string> paths = leaf_paths(after);
  const TreeLeaves leaves = flatten(after);
  int moments = 0;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (paths[i].find("moment.encoder") != std::string::npos && leaves[i].tensor.is_defined())
      expect_same_bits(leaves[i].tensor, zeros({2})), ++moments;
  EXPECT_EQ(moments, 4);
}

TEST_P(FrozenParametersTest, DoNotMakeTheNormF64) {
  struct Mixed {
    Tensor encoder, head;
  };
  const Mixed from{tensor({1.0}, {}, f64), tensor({1.0, 2.0})};
  const Tensor g = tensor({0.1, 0.7});
  const auto clips = [](const auto& p, const Groups& groups) {
    return Sgd(p, {.learning_rate = 0.1, .groups = groups, .clip_norm = 0.3});
  };
  const Tensor alone = after_steps(from.head, clips(from.head, {}), g).first;
  const Mixed to = after_steps(from, clips(from, kEncoder), Mixed{tensor({9.0}, {}, f64), g}).first;
  expect_same_bits(to.head, alone);
  expect_same_bits(to.encoder, from.encoder);
}

TEST_P(FrozenParametersTest, MayBeAll) {
  const Groups all{
      {.contains = [](const std::string&, const Tensor&) { return true; }, .frozen = true}};
  for_each_optimiser([&](const char* name, const auto& make) {
    SCOPED_TRACE(name);
    const auto [to, optimiser] = after_steps(start(), make(start(), all), gradient_with(NAN));
    expect_same_encoder(to, start());
    expect_same_head(to.head, start().head);
    expect_values(optimiser.step(), {3});
  });
}

TEST_P(FrozenParametersTest, AreThoseThatNoGroupBeforeContains) {
  const auto is_bias = [](const std::string& path, const Tensor&) {
    return path.ends_with("bias");
  };
  const ParameterGroup biases{.contains = is_bias, .rate = 0.5};
  const Model from = start();
  const auto after = [&](const Groups& groups) {
    return after_steps(from, Sgd(from, {.groups = groups}), gradient_with(1)).first;
  };
  expect_same_encoder(after({kEncoder[0], biases}), from);
  const Model to = after({biases, kEncoder[0]});
  expect_same_bits(to.encoder.weight, from.encoder.weight);
  expect_same_bits(to.encoder.bias, after({biases}).encoder.bias);
}

TEST_P(FrozenParametersTest, MayBeTableRows) {
  struct Words {
    EmbeddingTable encoder, head;
  };
  const Tensor table = tensor({{1., 2.}, {3., 4.}, {5., 6.}});
  const Words from{EmbeddingTable(table), EmbeddingTable(table)};
  const auto rows = [](const Tensor& values, const Tensor& indices) {
    return EmbeddingTable({values, indices, tensor({3, 2})}, {3, 2});
  };
  const Tensor values = tensor({{1., 0.}, {2., 3.}, {1., 1.}}), indices = tensor({2, 0, 2});
  for_each_optimiser([&](const char* name, const auto& make) {
    SCOPED_TRACE(name);
    const EmbeddingTable alone =
        after_steps(from.head, make(from.head, {}), rows(values, indices)).first;
    // No row of the frozen table's gradient is read, so not even its numbers are checked.
    for (const EmbeddingTable& of_encoder :
         {rows(full({2, 2}, NAN), tensor({1, 1})), rows(ones({1, 2}), tensor({99})),
          EmbeddingTable(full({3, 2}, NAN))}) {
      const Words to =
          after_steps(from, make(from, kEncoder), Words{of_encoder, rows(values, indices)}).first;
      expect_same_bits(to.encoder.dense(), table);
      expect_same_bits(to.head.dense(), alone.dense());
    }
  });
}

TEST_P(FrozenParametersTest, KeepTheirBitsInALoop) {
  struct Pair {
    Tensor encoder, head;
  };
  const Tensor xs = tensor({{1., 2.}, {3., 4.}, {-1., 0.5}});
  const auto loss_of = [](const Pair& p, const Tensor& x) {
    return sum(square(p.encoder * x + p.head));
  };
  const auto train = run([&](const Pair& from, const AdamW<Pair>& adam, const Tensor& xs) {
    const auto body = [&](const Tensor& x, const std::pair<Pair, AdamW<Pair>>& state) {
      auto [p, o] = state;
      o.update(p, grad(loss_of)(p, x));
      return std::pair{None{}, std::pair{p, o}};
    };
    return scan(Scan{.initial = std::pair{from, adam}, .xs = xs, .body = body}).state.first;
  });
  const Pair from{tensor({0.5, -2.0}), tensor({1.0, 1.0})};
  const AdamWOptions options{.learning_rate = 0.1, .groups = kEncoder, .clip_norm = 1};
  const Pair to = train(from, AdamW(from, options), xs);
  expect_same_bits(to.encoder, from.encoder);
  Pair by_hand = from;
  AdamW<Pair> adam(from, options);
  for (const Tensor& x : unstack(xs, 0)) adam.update(by_hand, grad(loss_of)(by_hand, x));
  expect_all_close(to.head, by_hand.head, 1e-6);
  expect_same_bits(by_hand.encoder, from.encoder);
}

TEST(FrozenParametersInTraces, FreezingIsPartOfTheSignature) {
  const auto step = jit([](Model m, Sgd<Model> sgd) {
    sgd.update(m, gradient_with(1));
    return m;
  });
  const Groups trained{{.contains = is_of_encoder}};
  const Model frozen = step(start(), Sgd(start(), {.groups = kEncoder}));
  const Model all = step(start(), Sgd(start(), {.groups = trained}));
  EXPECT_EQ(step.trace_count(), 2);
  expect_same_encoder(frozen, start());
  expect_same_head(frozen.head, all.head);
  expect_values(all.encoder.weight, {0.99, -0.01}, 1e-6);
}

// ---- Files --------------------------------------------------------------------------------------

struct Training {
  Model model = start();
  AdamW<Model> adam;
  explicit Training(const Groups& groups) : adam(model, {.groups = groups}) {}
  void go(int steps) {
    for (int i = 0; i < steps; ++i) adam.update(model, gradient_with(5));
  }
  auto members() { return std::tie(model, adam); }
};

class FrozenFilesTest : public InOwnFolder {
 protected:
  FrozenFilesTest() : InOwnFolder("training.safetensors") {}
};

TEST_F(FrozenFilesTest, ACheckpointLoadsWhateverIsFrozen) {
  Training all({}), frozen(kEncoder);
  all.go(2);
  save_checkpoint(path, all);
  // Files of older versions have moments of every parameter, under these names.
  const std::vector<std::string> names = SafetensorsFile(path).names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "1.first_moment.encoder.weight"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "1.second_moment.encoder.bias"), 1);
  save_checkpoint(path, frozen);
  EXPECT_EQ(SafetensorsFile(path).names(), names);
  save_checkpoint(path, all);
  load_checkpoint(path, frozen);
  all.go(1);
  frozen.go(1);
  expect_same_head(frozen.model.head, all.model.head);
  Training before({});
  load_checkpoint(path, before);
  expect_same_encoder(frozen.model, before.model);
  EXPECT_EQ(frozen.adam.step().item<std::int64_t>(), 3);

  Training from(kEncoder), thawed({});
  from.go(2);
  save_checkpoint(path, from);
  load_checkpoint(path, thawed);
  thawed.go(1);
  from.go(1);
  expect_same_head(thawed.model.head, from.model.head);
  EXPECT_NE(values_of(thawed.model.encoder.bias), values_of(start().encoder.bias));
}

// ---- Errors -------------------------------------------------------------------------------------

TEST(FrozenErrorsTest, NameOptimiserGroupAndOption) {
  const auto frozen_with = [](const ParameterGroup& group) {
    ParameterGroup frozen = group;
    frozen.contains = is_of_encoder;
    frozen.frozen = true;
    return Groups{
        {.contains = [](const std::string& path, const Tensor&) { return path == "head.bias"; }},
        frozen};
  };
  for (const double rate : {0.0, 0.5, -1.0})
    EXPECT_EQ(
        message_of<ArgumentError>([&] { Adam(start(), {.groups = frozen_with({.rate = rate})}); }),
        str("Adam: group 1 is frozen and has a rate of ", rate, "; leave the rate out"));
  for (const double decay : {0.0, 0.1})
    EXPECT_EQ(message_of<ArgumentError>(
                  [&] { AdamW(start(), {.groups = frozen_with({.weight_decay = decay})}); }),
              str("AdamW: group 1 is frozen and has a weight_decay of ", decay,
                  "; leave the weight_decay out"));
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { Sgd(start(), {.groups = frozen_with({.weight_decay = 0.1})}); }),
            "Sgd: group 1 is frozen and has a weight_decay of 0.1; leave the weight_decay out");
  EXPECT_EQ(
      message_of<ArgumentError>([&] {
        RmsProp(start(),
                {.groups = {{.contains = [](const std::string& path,
                                            const Tensor&) { return path.starts_with("enc oder"); },
                             .frozen = true}}});
      }),
      "RmsProp: group 0 contains no parameter that is not in a group before it; the "
      "parameters are encoder.weight, encoder.bias, head.weight, head.bias");
}

TEST(FrozenErrorsTest, NameTheNumberOfTensorsThatTheGroupsWereMadeFor) {
  using Layers = std::vector<Tensor>;
  const auto is_first = [](const std::string& path, const Tensor&) { return path == "0"; };
  const Layers two{ones({1}), ones({1})}, three{ones({1}), ones({1}), ones({1})};
  Sgd<Layers> sgd(two, {.groups = {{.contains = is_first, .frozen = true}}});
  const std::string message =
      "Sgd: the parameters have another structure than those that it was made for\n  3 floating "
      "tensors, when it was made 2";
  Layers updated = three;
  EXPECT_EQ(message_of<StructureError>([&] { sgd.update(updated, three); }), message);
  EXPECT_EQ(message_of<StructureError>([&] { sgd.stop_frozen_gradients(three); }), message);
}

}  // namespace
}  // namespace reel
