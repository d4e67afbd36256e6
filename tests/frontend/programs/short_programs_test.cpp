// Programs that users write, each on a page: data in, a model, a loop, a result that is known.
#include <cmath>
#include <fstream>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

#ifdef REEL_HAS_CSV
/// A table of measurements: the next value of a wave, from the last eight ones.
class ForecasterTest : public InOwnFolder {
 protected:
  ForecasterTest() : InOwnFolder("wave.csv") {}
};

TEST_F(ForecasterTest, LearnsAWaveFromATable) {
  {
    CsvWriter table(path, {"hour", "level"});
    for (int hour = 0; hour < 120; ++hour) table.row({hour, std::sin(0.3 * hour)});
  }
  struct Windows {
    Tensor past, next;
  };
  struct Model {
    Linear hidden, out;
  };
  const Dim batch("batch", 112), time("time", 8), in("in", 8), hidden("hidden", 16), one("one", 1);
  const Tensor level = load_csv(path).numbers("level", {Dim("hour")});
  const Windows data{
      rename(level[expand(range(batch), time) + expand(range(time), batch)], time, in),
      level[range(batch) + 8]};

  manual_seed(3);
  Model model{Linear::init(in, hidden), Linear::init(hidden, one)};
  AdamW adam(model, {.learning_rate = 0.02, .clip_norm = 1});
  const auto loss = [&](const Model& m, const Windows& w) {
    return mean_squared_error(sum(m.out(tanh(m.hidden(w.past))), one), w.next);
  };
  const auto step = jit([&](Model m, AdamW<Model> adam, const Windows& w) {
    auto [value, gradient] = value_and_grad(loss)(m, w);
    adam.update(m, gradient);
    return std::tuple{m, adam, value};
  });
  Tensor value;
  for (const Windows& w : Batches(data, batch, {.rows = 16, .shuffle = 1, .epochs = 30}))
    std::tie(model, adam, value) = step(std::move(model), std::move(adam), w);
  EXPECT_LT(loss(model, data).item<double>(), 0.01);
  EXPECT_LE(step.trace_count(), 2);
}

#endif

TEST(TextClassifierTest, TellsWordsWithAnXFromOthers) {
  const std::vector<std::string> words{"axe", "tree", "box", "a", "xylem", "lemon", "mix", "oak"};
  const Tensor labels = tensor({1, 0, 1, 0, 1, 0, 1, 0}, {Dim("word", 8)});
  struct Words {
    Tensor letters, labels;
  };
  struct Model {
    Embedding letters;
    Linear out;
  };
  const Dim bytes("bytes", 256), feature("feature", 8), classes("classes", 2);
  manual_seed(5);
  Model model{Embedding::init(bytes, feature), Linear::init(feature, classes)};
  Adam adam(model, {.learning_rate = 0.05});
  const auto logits = [](const Model& m, const Tensor& text) {
    return m.out(max(m.letters(text), text.dim("letters")));
  };
  const auto step = jit([&](Model m, Adam<Model> adam, const Words& w) {
    const auto loss = [&](const Model& at) {
      return cross_entropy(logits(at, w.letters), w.labels, at.out.out);
    };
    adam.update(m, grad(loss)(m));
    return std::pair{m, adam};
  });
  const auto make = [&](const std::vector<std::int64_t>& rows) {
    const Dim batch("batch", scalar(static_cast<int>(rows.size())));
    std::vector<std::string> texts;
    for (const std::int64_t row : rows) texts.push_back(words[static_cast<std::size_t>(row)]);
    return Words{ragged(texts, {batch, Dim("letters")}), labels[tensor(rows, {batch})]};
  };
  for (const Words& w : Batches(words.size(), make, {.rows = 3, .shuffle = 2, .epochs = 40}))
    std::tie(model, adam) = step(std::move(model), std::move(adam), w);
  const Words all = make({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(accuracy(logits(model, all.letters), all.labels, classes).mean().item<float>(), 1);
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(CrfTest, ThePartitionFunctionIsTheSumOverAllPaths) {
  const Dim time("time", 4), tag("tag", 3), next("next", 3);
  manual_seed(7);
  const Tensor emissions = random_normal({time, tag}, f64), moves = random_normal({tag, next}, f64);
  const auto log_partition = [&](const Tensor& scores) {
    const auto advance = [&](const Tensor& alpha, const Tensor& score) {
      return rename(logsumexp(alpha + moves, tag), next, tag) + score;
    };
    return logsumexp(foldl(advance, scores, {.spatial_dim = time}), tag);
  };
  double total = 0;
  for (int path = 0; path < 81; ++path) {
    double score = 0;
    for (int t = 0, rest = path, last = 0; t < 4; ++t, rest /= 3) {
      const int now = rest % 3;
      score += emissions.at(t, now).item<double>();
      if (t) score += moves.at(last, now).item<double>();
      last = now;
    }
    total += std::exp(score);
  }
  EXPECT_NEAR(log_partition(emissions).item<double>(), std::log(total), 1e-12);
  // The gradient has the probability of each tag at each place.
  const Tensor marginals = jit(grad(log_partition))(emissions);
  for (const double sum : sum(marginals, tag).to_vector<double>()) EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(AdaptiveStepsTest, SolveAnEquationAndItsGradient) {
  // y' = -y from 0 to 1, with steps as large as the difference of Heun's and Euler's allows.
  const auto solve = [](const Tensor& y0) {
    struct State {
      Tensor t, y, step;
    };
    const auto advance = [](const State& s) {
      const Tensor h = minimum(s.step, 1.0 - s.t);
      const Tensor slope = -s.y, euler = s.y + h * slope, heun = s.y + h * 0.5 * (slope - euler);
      const Tensor error = abs(heun - euler), is_good = error < 1e-5;
      const Tensor factor = clip(0.9 * sqrt(1e-5 / (error + 1e-12)), 0.2, 2.0);
      return State{where(is_good, s.t + h, s.t), where(is_good, heun, s.y),
                   stop_gradient(h * factor)};
    };
    return while_loop([](const State& s) { return s.t < 1.0; }, advance,
                      State{scalar(0.0, f64), y0, scalar(0.1, f64)}, {.name = "solve"})
        .y;
  };
  const auto [y, gradient] = jit(value_and_grad(solve))(scalar(2.0, f64));
  EXPECT_NEAR(y.item<double>(), 2 * std::exp(-1.0), 1e-4);
  EXPECT_NEAR(gradient.item<double>(), std::exp(-1.0), 1e-4);
}

TEST(ReinforceTest, FindsTheArmThatPaysMost) {
  const Dim arm("arm", 3), batch("batch", 64);
  const Tensor pay = tensor({0.1, 0.9, 0.3}, {arm});
  const auto step = jit([&](Tensor logits) {
    const Tensor choice = categorical(expand(logits, batch), arm);
    const Tensor reward = pay[choice], advantage = reward - mean(reward);
    const auto loss = [&](const Tensor& at) {
      const Tensor chosen = gather(expand(log_softmax(at, arm), batch), choice, arm);
      return -mean(advantage * chosen);
    };
    logits -= 0.5 * grad(loss)(logits);
    return logits;
  });
  manual_seed(11);
  Tensor logits = zeros({arm});
  for (int i = 0; i < 100; ++i) logits = step(logits);
  EXPECT_GT(softmax(logits, arm).at(1).item<double>(), 0.9);
}

class ImportTest : public InOwnFolder {
 protected:
  ImportTest() : InOwnFolder("weights.safetensors") {}
};

TEST_F(ImportTest, WeightsOfAnotherFramework) {
  // Other frameworks store {out, in}, under names of their own.
  manual_seed(13);
  const Tensor weight = random_normal({2, 3}), bias = random_normal({2}), x = random_normal({4, 3});
  save_safetensors(path, std::map<std::string, Tensor>{{"fc.weight", weight}, {"fc.bias", bias}});

  const Dim in("in", 3), out("out", 2), batch("batch", 4);
  const SafetensorsFile file(path);
  Linear layer = Linear::init(in, out);
  layer.weight = transpose(file.tensor("fc.weight", {out, in}), {in, out});
  layer.bias = file.tensor("fc.bias", {out});
  expect_all_close(layer(reshape(x, {batch, in})),
                   reshape(matmul(x, transpose(weight, {1, 0})) + bias, {batch, out}));
}

TEST(StateSpaceTest, AScanAndALoopAgree) {
  const Dim batch("batch", 2), time("time", tensor({5, 3}, {batch})), state("state", 4);
  manual_seed(17);
  const Tensor x = random_normal({batch, time}, f64), decay = sigmoid(random_normal({state}, f64)),
               in = random_normal({state}, f64), out = random_normal({state}, f64);
  const auto at_once = [&](const Tensor& x) {
    return sum(linear_scan(decay, expand(x, state) * in, time) * out, state);
  };
  const auto in_loop = [&](const Tensor& x) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = h * decay + expand(x, state) * in;
      return std::pair{sum(next * out, state), next};
    };
    return scan(Scan{.spatial_dim = time,
                     .initial = zeros({batch, state}, f64),
                     .xs = x,
                     .body = body})
        .ys;
  };
  const auto squares = [](const auto& f) {
    return [f](const Tensor& x) { return sum(square(f(x))); };
  };
  expect_all_close(transpose(at_once(x), {batch, time}), transpose(in_loop(x), {batch, time}));
  expect_all_close(grad(squares(at_once))(x), grad(squares(in_loop))(x));
}

TEST(TransformerTest, ACausalBlockDoesNotSeeTheFuture) {
  struct Block {
    Linear q, k, v, up, down;
    LayerNorm norm;
  };
  const Dim batch("batch", 2), time("time", tensor({5, 3}, {batch})), in("in", 4), head("head", 4),
      value("value", 4), wide("wide", 8);
  manual_seed(19);
  const Block block{Linear::init(in, head),    Linear::init(in, head), Linear::init(in, value),
                    Linear::init(value, wide), Linear::init(wide, in), LayerNorm::init(in)};
  const auto forward = [&](const Tensor& x) {
    const Tensor seen = block.norm(x);
    const Dim keys("keys", time.lengths());
    const auto as_keys = [&](const Tensor& y) { return rename(y, time, keys); };
    const Tensor mixed = attention(block.q(seen), as_keys(block.k(seen)), as_keys(block.v(seen)),
                                   keys, head, {.causal = time});
    return x + block.down(gelu(block.up(mixed)));
  };
  const Tensor x = random_normal({batch, time, in});
  const Tensor later = where(range(time) < 2, x, x + 1.0);
  const Tensor y = jit(forward)(x), z = jit(forward)(later);
  for (int t = 0; t < 2; ++t) expect_all_close(y.at(time, t), z.at(time, t));
  EXPECT_FALSE(all(y.at(time, 2) == z.at(time, 2)).item<bool>());
}

TEST(MicroBatchesTest, HaveTheGradientOfTheWholeBatch) {
  const Dim in("in", 3), classes("classes", 4);
  manual_seed(23);
  const Linear model = Linear::init(in, classes, {.dtype = f64});
  struct Batch {
    Tensor x, labels;
  };
  const auto batch_of = [&](int rows) {
    const Dim batch("batch", rows);
    return Batch{random_normal({batch, in}, f64), random_integers({batch}, 0, 4)};
  };
  const Batch first = batch_of(5), second = batch_of(2);
  const auto loss = [&](const Linear& m, const Batch& b) {
    return log_loss(m(b.x), b.labels, classes);
  };
  GradientSum<Linear> sum(model, f64);
  for (const Batch& part : {first, second}) sum.add(loss, model, part);
  const auto mean_of_both = [&](const Linear& m) {
    return (loss(m, first) + loss(m, second)).mean();
  };
  const auto [value, gradient] = value_and_grad(mean_of_both)(model);
  const auto [sum_value, sum_gradient] = sum.mean();
  expect_all_close(sum_value, value);
  expect_all_close(sum_gradient.weight, gradient.weight);
}

}  // namespace
}  // namespace reel
