// The programs of docs/data.md: each runs here and does as the page says.
#include <cmath>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class DataPage : public InOwnFolder {
 protected:
  DataPage() : InOwnFolder("lines.txt") {}
};

TEST_F(DataPage, RowsOfDifferentLengths) {
  const auto run = [] {
    const std::vector<std::vector<float>> rows{{1, 2}, {}, {3, 4, 5}};
    const Tensor x = ragged(rows, {Dim("batch"), Dim("time")});  // f32[batch=3,time[batch=3]]
    const Tensor doubled = x * 2;
    return rows_of(doubled);  // {{2, 4}, {}, {6, 8, 10}}
  };
  EXPECT_EQ(run(), (std::vector<std::vector<float>>{{2, 4}, {}, {6, 8, 10}}));
  const std::vector<std::string> words{"the", "cat"};
  const Tensor letters = ragged(words, {Dim("batch"), Dim("letters")});
  EXPECT_EQ(rows_of<std::string>(letters), words);
}

#ifdef REEL_HAS_CSV
TEST_F(DataPage, MissingNumbersOfATableAreNaN) {
  write(path, "day;level;open\n1;2,5;True\n2;NA;False\n3;;True\n");
  const auto run = [&] {
    const CsvTable table =
        load_csv(path, {.separator = ';', .decimal = ',', .missing = {"", "NA"}});
    const Tensor level = table.numbers("level", {Dim("day")});  // {2.5, nan, nan}
    const Tensor open = table.numbers("open", {Dim("day")}, boolean);
    return std::pair{level, open};
  };
  const auto [level, open] = run();
  EXPECT_EQ(level.to_vector<float>()[0], 2.5f);
  EXPECT_TRUE(std::isnan(level.to_vector<float>()[1]) && std::isnan(level.to_vector<float>()[2]));
  expect_values(open, {1, 0, 1});
}
#endif

struct Training {
  Tensor total = scalar(0.0, f64);
  BatchPosition data;
};

TEST_F(DataPage, BatchesOfLines) {
  std::string text;
  double expected = 0;
  for (int line = 0; line < 50; ++line) {
    const std::string words(static_cast<std::size_t>(line * 7 % 20), 'a');
    text += words + '\n';
    expected += 2 * 97 * static_cast<double>(words.size());
  }
  write(path, text);
  const std::string checkpoint = path + ".safetensors";
  const auto step =
      jit([](const Tensor& total, const Tensor& text) { return total + cast(sum(text), f64); });
  Training now;
  const auto as_batch = [](const std::vector<std::string>& lines) {
    const Dim batch("batch", scalar(static_cast<int>(lines.size())));
    return ragged(lines, {batch, Dim("time")});
  };
  Batches batches(load_lines(path), as_batch,
                  {.tokens = 64, .shuffle = 1, .bucket = 100, .epochs = 2});
  batches.seek(now.data);
  for (const Tensor& text : batches) {
    now.total = step(std::move(now.total), text);
    now.data = batches.position();
    save_checkpoint(checkpoint, now);
  }
  expect_values(now.total, {expected});
  EXPECT_EQ(step.trace_count(), 1);
  Training loaded;
  load_checkpoint(checkpoint, loaded);
  EXPECT_EQ(loaded.data.epoch.item<int>(), 1);
  EXPECT_GT(loaded.data.batch.item<int>(), 0);
}

TEST_F(DataPage, MicroBatchesGiveTheGradientOfTheBatch) {
  const Tensor w = scalar(2.0, f64);
  const Tensors parts{tensor({1., 2.}, f64), tensor({3.}, f64)};
  const auto loss_of = [](const Tensor& w, const Tensor& x) {
    return Weighted{sum(square(w * x)), cast(sum(ones_like(x)), f64)};
  };
  const auto add = jit([&](GradientSum<Tensor> sum, const Tensor& w, const Tensor& x) {
    sum.add(loss_of, w, x);
    return sum;
  });
  GradientSum<Tensor> sum(w, f64);
  for (const Tensor& x : parts) sum = add(std::move(sum), w, x);
  const auto [loss, gradient] = sum.mean();
  expect_values(loss, {4 * 14 / 3.}, 1e-12);
  expect_values(gradient, {4 * 14 / 3.}, 1e-12);
}

TEST_F(DataPage, UpdateCountsAStepWithGroupsAndClipping) {
  struct Model {
    Linear readout;
  };
  const Dim in("in", 2), out("out", 2);
  Model model{Linear::init(in, out)};
  const auto is_bias = [](const std::string& path, const Tensor&) {
    return path.ends_with("bias");
  };
  AdamW adam(model, {.learning_rate = 1e-3,
                     .weight_decay = 0.1,
                     .groups = {{.contains = is_bias, .weight_decay = 0}},
                     .clip_norm = 1});
  adam.update(model, model);
  EXPECT_EQ(adam.step().item<int>(), 1);
}

}  // namespace
}  // namespace reel
