// Gradients of frozen parameters: a traced step does not compute them, and stop_frozen_gradients
// leaves them out elsewhere.
#include "reel/tests/frontend/optimisers/each_optimiser.h"
#include "reel/tests/modes.h"
#include "reel/tests/occurrences.h"

namespace reel {
namespace {

const Dim in("in", 3), hidden("hidden", 4), classes("class", 2), vocab("vocab", 10);

struct Tagger {
  EmbeddingTable words{random_normal({vocab, in})};
  LstmCell encoder = LstmCell::init(in, hidden);
  Linear head = Linear::init(hidden, classes);

  Tensor operator()(const Tensor& ids) const {
    return head(recur(encoder, gather(words, ids), ids.dim("time")).state.h);
  }
};

struct Batch {
  Tensor ids, targets;
};
Batch batch() {
  const Dim batch("batch", 3), time("time", tensor({4, 2, 1}, {batch}));
  return {cast(random_uniform({batch, time}, 0, 10), i32), tensor({0, 1, 1}, {batch})};
}
Weighted loss_of(const Tagger& model, const Batch& batch) {
  return log_loss(model(batch.ids), batch.targets, classes);
}
bool is_not_of_head(const std::string& path, const Tensor&) { return !path.starts_with("head"); }
const Groups kAllButTheHead{{.contains = is_not_of_head, .frozen = true}};

struct Pair {
  Tensor encoder, head;
};
const Groups kEncoder{
    {.contains = [](const std::string& path, const Tensor&) { return path == "encoder"; },
     .frozen = true}};

/// Returns the number of loops of gradients in a report.
int gradient_loops(const std::string& report) {
  return occurrences(": the gradient of scan", report);
}

class FrozenGradientsTest : public ::testing::Test {
 protected:
  FrozenGradientsTest() { manual_seed(3); }
};

TEST_F(FrozenGradientsTest, AreNotComputedByATracedStep) {
  const Tagger model;
  for_each_optimiser([&](const char* name, const auto& make) {
    SCOPED_TRACE(name);
    const auto report_of = [&](const Groups& groups) {
      const auto optimiser = make(model, groups);
      using Optimiser = std::decay_t<decltype(optimiser)>;
      const auto step = jit([](Tagger model, Optimiser optimiser, const Batch& batch) {
        const auto loss = [](const Tagger& m, const Batch& b) { return loss_of(m, b).mean(); };
        const auto [value, gradient] = value_and_grad(loss)(model, batch);
        optimiser.update(model, gradient);
        return std::tuple{model, optimiser, value};
      });
      step(model, optimiser, batch());
      return step.explain();
    };
    const std::string all = report_of({}), frozen = report_of(kAllButTheHead);
    EXPECT_EQ(occurrences("residuals: ", all), 1) << all;
    EXPECT_GE(gradient_loops(all), 1) << all;
    EXPECT_EQ(occurrences("residuals: ", frozen), 0) << frozen;
    EXPECT_EQ(gradient_loops(frozen), 0) << frozen;
    // If a part of the cell is frozen, only its gradient is missing.
    const std::string part =
        report_of({{.contains = [](const std::string& path,
                                   const Tensor&) { return path == "encoder.recurrent_weight"; },
                    .frozen = true}});
    EXPECT_EQ(gradient_loops(part), gradient_loops(all)) << part;
    const std::string of_weight =
        "sunk: dot(f32[time[batch=3],batch=3,hidden=4], f32[time[batch=3],batch=3,gate=16]) -> "
        "f32[hidden=4,gate=16]";
    EXPECT_EQ(occurrences(of_weight, all), 1) << all;
    EXPECT_EQ(occurrences(of_weight, part), 0) << part;
  });
}

TEST_F(FrozenGradientsTest, AreInNoExecutorsGraph) {
  const auto step = [](Tagger model, AdamW<Tagger> adam, const Batch& batch) {
    const auto loss = [](const Tagger& m, const Batch& b) { return loss_of(m, b).mean(); };
    adam.update(model, grad(loss)(model, batch));
    return std::pair{model, adam};
  };
  const Tagger model;
  for (const Executor executor : {Executor::plan, Executor::interpreter, Executor::dataflow}) {
    const auto loops_with = [&](const Groups& groups) {
      const auto traced = jit(step, {.executor = executor});
      traced(model, AdamW(model, {.groups = groups, .clip_norm = 1}), batch());
      return occurrences(" loop", str(traced.graph()));
    };
    EXPECT_LT(loops_with(kAllButTheHead), loops_with({}));
  }
}

TEST_F(FrozenGradientsTest, MicroBatchesSumNoFrozenGradients) {
  const auto loss_of = [](const Pair& p, const Tensor& x) {
    return Weighted{sum(square(matmul(tanh(matmul(x, p.encoder)), p.head))), scalar(2.0)};
  };
  const Pair from{random_normal({3, 5}), random_normal({5, 2})};
  const auto report_of = [&](const Groups& groups) {
    const auto step = jit([&](Pair p, AdamW<Pair> adam, const Tensor& parts) {
      const auto body = [&](const Tensor& x, GradientSum<Pair> sum) {
        sum.add(loss_of, p, x);
        return std::pair{None{}, sum};
      };
      const auto sums = scan(Scan{.initial = GradientSum<Pair>(p), .xs = parts, .body = body});
      const auto [loss, gradient] = sums.state.mean();
      adam.update(p, gradient);
      return std::tuple{p, adam, loss};
    });
    const auto [to, adam, loss] =
        step(from, AdamW(from, {.groups = groups, .clip_norm = 1}), random_normal({4, 2, 3}));
    if (!groups.empty()) expect_same_bits(to.encoder, from.encoder);
    return step.explain();
  };
  const std::string all = report_of({}), frozen = report_of(kEncoder);
  EXPECT_EQ(occurrences("carries: f32[3,5], f32[5,2], 2 x f32[]", all), 1) << all;
  EXPECT_EQ(occurrences("-> f32[4,3,5]", all), 1) << all;
  EXPECT_EQ(occurrences("carries: f32[5,2], 2 x f32[]", frozen), 1) << frozen;
  EXPECT_EQ(occurrences("-> f32[4,3,5]", frozen), 0) << frozen;
}

// ---- Outside of the step ------------------------------------------------------------------------

using StoppedGradientsTest = InEveryMode;
REEL_IN_EVERY_MODE(StoppedGradientsTest);

TEST_P(StoppedGradientsTest, AreZerosAndNoRows) {
  const Tagger model;
  const AdamW<Tagger> adam(model, {.groups = kAllButTheHead});
  const auto gradients = run([](const Tagger& model, const AdamW<Tagger>& adam, const Batch& b) {
    const auto loss = [](const Tagger& m, const Batch& b) { return loss_of(m, b).mean(); };
    const auto stopped = [&](const Tagger& m, const Batch& b) {
      return loss(adam.stop_frozen_gradients(m), b);
    };
    return std::pair{grad(loss)(model, b), grad(stopped)(model, b)};
  });
  const auto [all, stopped] = gradients(model, adam, batch());
  expect_same_bits(stopped.encoder.input_weight, zeros({in, all.encoder.input_weight.dim(1)}));
  expect_same_bits(stopped.head.weight, all.head.weight);
  EXPECT_GT(all.words.slices().indices.numel(), 0);
  EXPECT_EQ(stopped.words.slices().indices.numel(), 0);
}

TEST_F(FrozenGradientsTest, SeparateCallsOfMicroBatchesStopFrozenGradients) {
  const Tagger model;
  const AdamW<Tagger> adam(model, {.groups = kAllButTheHead});
  const auto stopped = [&](const Tagger& m, const Batch& b) {
    return loss_of(adam.stop_frozen_gradients(m), b);
  };
  const auto add = jit([&](GradientSum<Tagger> sum, const Tagger& model, const Batch& batch) {
    sum.add(stopped, model, batch);
    return sum;
  });
  GradientSum<Tagger> sum(model), all(model);
  for (int i = 0; i < 2; ++i) {
    const Batch part = batch();
    sum = add(std::move(sum), model, part);
    all.add(loss_of, model, part);
  }
  EXPECT_EQ(gradient_loops(add.explain()), 0) << add.explain();
  Tagger a = model, b = model;
  AdamW<Tagger> of_a = adam, of_b = adam;
  of_a.update(a, sum.mean().second);
  of_b.update(b, all.mean().second);
  expect_same_bits(a.encoder.bias, model.encoder.bias);
  expect_all_close(a.head.weight, b.head.weight, 1e-6);
}

TEST_F(FrozenGradientsTest, AreNotComputedEagerlyIfTheLossStopsThem) {
  int backward = 0;
  const auto counted = custom_vjp(
      [](const Tensor& x) {
        return std::pair{x * 2, None{}};
      },
      [&](None, const Tensor& cotangent) {
        ++backward;
        return cotangent * 2;
      });
  const Pair from{ones({2}), ones({2})};
  const Sgd<Pair> sgd(from, {.groups = kEncoder});
  const auto loss = [&](const Pair& p) { return sum(counted(p.encoder) * p.head); };
  grad(loss)(from);
  EXPECT_EQ(backward, 1);
  grad([&](const Pair& p) { return loss(sgd.stop_frozen_gradients(p)); })(from);
  EXPECT_EQ(backward, 1);
}

TEST_F(FrozenGradientsTest, ParametersThatMoveInKeepTheirMemory) {
  using State = std::pair<Tagger, AdamW<Tagger>>;
  const auto step = jit([](State state, const Batch& batch) {
    const auto loss = [](const Tagger& m, const Batch& b) { return loss_of(m, b).mean(); };
    state.second.update(state.first, grad(loss)(state.first, batch));
    return state;
  });
  Tagger model;
  State state{model, AdamW(model, {.groups = kAllButTheHead})};
  model = {};
  const void* const table = state.first.words.dense().data<void>();
  state = step(std::move(state), batch());
  const void* const head = state.first.head.weight.data<void>();
  for (int i = 0; i < 3; ++i) state = step(std::move(state), batch());
  EXPECT_EQ(state.first.words.dense().data<void>(), table);
  EXPECT_EQ(state.first.head.weight.data<void>(), head);
}

}  // namespace
}  // namespace reel
