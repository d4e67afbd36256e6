// The programs of docs/start/: each runs here and does as its page says.
#include <string>
#include <tuple>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class StartPages : public InOwnFolder {
 protected:
  StartPages() : InOwnFolder("tagger.safetensors") { manual_seed(1); }
};

const Dim letter("letter", 256), feature("feature", 8), hidden("hidden", 16), tag("tag", 2);

struct Tagger {
  Embedding letters = Embedding::init(letter, feature);
  GruCell cell = GruCell::init(feature, hidden);
  Linear readout = Linear::init(hidden, tag);

  Tensor operator()(const Tensor& text) const {  // [batch, time] -> [time, batch, tag]
    const auto [states, last] = recur(cell, letters(text), text.dim("time"));
    return readout(states);
  }
};

const Dim both("both", 32);

struct BothWays {
  Embedding letters = Embedding::init(letter, feature);
  GruCell forward = GruCell::init(feature, hidden), backward = GruCell::init(feature, hidden);
  Linear readout = Linear::init(both, tag);

  Tensor operator()(const Tensor& text) const {
    const auto read = bidirectional(forward, backward, letters(text), text.dim("time"),
                                    {.out = both});  // both: the features of both cells
    return readout(read.outputs);
  }
};

struct Batch {
  Tensor text, tags;
};

Batch vowels_of(const std::vector<std::string>& words) {
  const Tensor text = ragged(words, {Dim("batch"), Dim("time")});
  const auto is = [&](char c) { return text == static_cast<int>(c); };
  return {text, cast(is('a') || is('e') || is('i') || is('o') || is('u'), i32)};
}

Tensor loss_of(const Tagger& tagger, const Batch& batch) {
  return cross_entropy(tagger(batch.text), batch.tags, tag);
}

TEST_F(StartPages, ReadsBothWays) {
  const Tensor text = vowels_of({"reel", "a"}).text;
  const Tensor logits = BothWays()(text);
  EXPECT_EQ(logits.dims(), (Dims{text.dim("time"), text.dim("batch"), tag}));
}

TEST_F(StartPages, TheFirstModelLearns) {
  Tagger tagger;
  Adam<Tagger> optimiser(tagger, {.learning_rate = 0.02});
  const Batch batch = vowels_of({"tensor", "reel", "loop", "a", "gradient", "bounded"});
  const Tensor before = loss_of(tagger, batch);
  for (int step = 0; step < 60; ++step) {
    const auto [loss, gradient] = value_and_grad(loss_of)(tagger, batch);
    optimiser.update(tagger, gradient);
  }
  const Weighted right = accuracy(tagger(batch.text), batch.tags, tag);
  std::cout << right.mean() << '\n';
  const Tensor best = argmax(tagger(batch.text), tag);  // [time, batch]
  const auto of_words = rows_of<int>(transpose(best, batch.text.dims()));
  EXPECT_EQ(of_words[1], (std::vector<int>{0, 1, 1, 0}));
  EXPECT_GT(before.item<float>(), 0.3f);
  EXPECT_GT(right.mean().item<float>(), 0.95f);

  const auto step = jit([](Tagger tagger, Adam<Tagger> optimiser, const Batch& batch) {
    const auto [loss, gradient] = value_and_grad(loss_of)(tagger, batch);
    optimiser.update(tagger, gradient);
    return std::tuple{tagger, optimiser, loss};
  });
  Tensor loss;
  for (const auto& words : {std::vector<std::string>{"many", "lengths"}, {"one", "trace"}})
    std::tie(tagger, optimiser, loss) =
        step(std::move(tagger), std::move(optimiser), vowels_of(words));
  EXPECT_EQ(step.trace_count(), 1);

  const Tensor text =
      ragged(std::vector<std::vector<int>>{{1, 2, 3}, {4}}, {Dim("batch"), Dim("time")});
  const Tensor tags = ragged(std::vector<std::vector<int>>{{0, 1, 0}, {1}}, text.dims());
  EXPECT_EQ(tags.dims(), text.dims());

  save_safetensors(path, tagger);
  Tagger loaded;
  load_safetensors(path, loaded);
  expect_same_bits(loaded(batch.text), tagger(batch.text));

  struct Training {
    Tagger model;
    Adam<Tagger> optimiser{model};
  };
  Training now{tagger, optimiser};
  save_checkpoint(path, now);
  Training resumed;
  load_checkpoint(path, resumed);
  EXPECT_EQ(resumed.optimiser.step().item<std::int64_t>(), 62);
}

TEST_F(StartPages, EagerAndTraced) {
  int calls = 0;
  const auto f = [&](const Tensor& x) {
    ++calls;
    return sum(square(x));
  };
  const Tensor x = tensor({1., 2., 3.});
  const Tensor now = f(x);      // eager: computed here, 14
  const auto fast = jit(f);     // nothing runs yet
  const Tensor same = fast(x);  // recorded, then run as a graph
  fast(x + 1);                  // runs the graph: f is not called
  expect_values(now, {14});
  expect_values(same, {14});
  EXPECT_EQ(calls, 2);

  const auto branch = jit([](const Tensor& x) {
    return cond(
        sum(x) > 0, [&] { return x; }, [&] { return -x; });
  });
  expect_values(branch(-x), {1, 2, 3});
  const auto reads_a_value = jit([](const Tensor& x) { return x * x.at(0).item<float>(); });
  EXPECT_THROW(reads_a_value(x), TraceError);
}

TEST_F(StartPages, LoopsGiveTheNumbersOfThePage) {
  const Tensor limit = scalar(1000);
  const auto [steps, value] =
      while_loop([&](const Tensor&, const Tensor& value) { return value < limit; },
                 [](const Tensor& steps, const Tensor& value) {
                   return std::tuple{steps + 1, value * 2};
                 },
                 std::tuple{scalar(0), scalar(1)});
  expect_values(steps, {10});
  expect_values(value, {1024});

  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch}));
  const Tensor x = tensor({1, 2, 3, 4, 5, 0}, {batch, time}, f32);
  const auto body = [](const Tensor& x, const Tensor& total) {
    const Tensor next = total + x;
    return std::pair{next * next, next};  // an output of this iteration, and the next state
  };
  const auto [squares, last, dim] =
      scan(Scan{.spatial_dim = time, .initial = zeros({batch}), .xs = x, .body = body});
  expect_values(last, {6, 9});  // each entry ends at its own length

  const Tensor power = fori_loop(
      0, 5, [](const Tensor&, const Tensor& p) { return p * 2; }, scalar(1.));
  const Tensor halves = map([](const Tensor& x) { return x / 2; }, tensor({2., 4.}));
  const Tensor longest = foldl([](const Tensor& best, const Tensor& x) { return maximum(best, x); },
                               tensor({2., 5., 3.}));
  expect_values(power, {32});
  expect_values(halves, {1, 2});
  expect_values(longest, {5});

  const auto sequence = [](const Tensor& w) {
    return fori_loop(
        0, 3, [&](const Tensor&, const Tensor& h) { return h * w; }, scalar(1.));
  };
  const Tensor first = grad(sequence)(scalar(2.));         // 3 w² = 12
  const Tensor second = grad(grad(sequence))(scalar(2.));  // 6 w = 12
  expect_values(first, {12});
  expect_values(second, {12});
}

TEST_F(StartPages, RaggedBatchesGiveTheNumbersOfThePage) {
  const std::vector<std::vector<float>> rows{{1, 2}, {}, {3, 4, 5}};
  const Tensor x = ragged(rows, {Dim("batch"), Dim("time")});
  const Dim time = x.dim("time");
  const Tensor means = mean(x, time);         // {1.5, 0, 4}: of each row's own elements
  const Tensor all = mean(x);                 // 3: of five elements
  const Tensor backwards = reverse(x, time);  // {2, 1}, {}, {5, 4, 3}
  const Tensor present = mask(time);          // booleans over {batch, time}
  expect_values(means, {1.5, 0, 4});
  expect_values(all, {3});
  expect_values(present, {true, true, false, false, false, false, true, true, true});
  EXPECT_EQ(rows_of(backwards), (std::vector<std::vector<float>>{{2, 1}, {}, {5, 4, 3}}));

  const Dim pair("pair", 2);
  const auto pairs_of = [&](const Tensor& x, double fill) {
    return split_dim(x, time, {ceildiv(time, 2), pair}, {.fill = fill});
  };
  const Tensor stacked = pairs_of(x, 0);                           // {{1, 2}}, {}, {{3, 4}, {5, 0}}
  const Tensor largest = max(pairs_of(x, -1e9), pair);             // {2}, {}, {4, 5}
  const Tensor counts = pairs_of(ones_like(x), 0);                 // 0 if an entry lacks it
  const Tensor averages = sum(stacked, pair) / sum(counts, pair);  // {1.5}, {}, {3.5, 5}
  const Tensor elements = pack(x, x.dims());                       // {1, 2, 3, 4, 5}
  EXPECT_EQ(rows_of(largest), (std::vector<std::vector<float>>{{2}, {}, {4, 5}}));
  EXPECT_EQ(rows_of(averages), (std::vector<std::vector<float>>{{1.5}, {}, {3.5, 5}}));
  expect_values(elements, {1, 2, 3, 4, 5});

  const Tensor padded = tensor({{1., 2., 0.}, {3., 4., 5.}});
  const Dim rows_dim("rows", 2), steps("steps", tensor({2, 3}, {rows_dim}));
  const Tensor named = reshape(padded, {rows_dim, steps});
  expect_values(sum(named, steps), {3, 12});
}

TEST_F(StartPages, LongSequencesNeedLessMemoryWithCheckpoints) {
  const Dim time("time", 2000);
  const Tensor x = random_normal({time, feature});
  const auto loss = [&](const RecurOptions<Tensor>& options) {
    return [=](const GruCell& cell) { return sum(square(recur(cell, x, time, options).outputs)); };
  };
  const GruCell cell = GruCell::init(feature, hidden);
  const auto keeps_all = jit(grad(loss({})));
  const auto keeps_few = jit(grad(loss({.checkpoint = Checkpoint::every(20)})));
  reset_peak_memory();
  keeps_all(cell);
  const std::int64_t most = memory().all.peak;
  keeps_all.clear_traces();  // frees its buffers
  reset_peak_memory();
  const GruCell gradient = keeps_few(cell);
  EXPECT_LT(memory().all.peak, most / 2);
  expect_all_close(gradient.recurrent_weight, keeps_all(cell).recurrent_weight, 1e-5);
}

TEST_F(StartPages, DebuggingOptionsThrowOnBadValues) {
  const auto f = [](const Tensor& x) {
    const Tensor y = print(log(x), "y");
    return sum(check_numerics(y, "logarithm"));
  };
  const Tensor bad = tensor({1., -1.});
  EXPECT_THROW(jit(f)(bad), NumericsError);
  const auto watched = jit([](const Tensor& x) { return sum(sqrt(log(x))); }, {.detect_nan = true});
  EXPECT_THROW(watched(tensor({0.5})), NumericsError);

  const Dim a("a", 2), b("b", 3);
  EXPECT_THROW(zeros({a}) + zeros({b}), ShapeError);
}

TEST_F(StartPages, ExplainAndProfileReportOneTrace) {
  const GruCell cell = GruCell::init(feature, hidden);
  const Dim batch("batch", 4), time("time", 30);
  const Tensor x = random_normal({batch, time, feature});
  const auto step =
      jit([](const GruCell& cell, const Tensor& x) { return recur(cell, x, x.dim("time")).state; },
          {.profile = true});
  step(cell, x);
  step(cell, x);
  const std::string text = step.explain(), table = step.profile().summary();
  EXPECT_FALSE(text.empty());
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(step.trace_count(), 1);
}

}  // namespace
}  // namespace reel
