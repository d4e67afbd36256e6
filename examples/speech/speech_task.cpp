#include "speech_task.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "../training/fingerprint.h"
#include "../training/user_error.h"
#include "../training/write_file.h"
#include "alignment.h"
#include "model.h"
#include "recordings.h"

using namespace reel;

namespace {

/// All that the next step depends on, besides the stream of random numbers. Members are named here
/// instead of being found by reflection, which takes compilers long for members without default
/// values.
template <class Model>
struct Learning {
  Model model;
  Adam<Model> optimiser;
  BatchPosition data;

  auto members() { return std::tie(model, optimiser, data); }
  static constexpr std::array<std::string_view, 3> member_names() {
    return {"model", "optimiser", "data"};
  }
};

/// Loss and gradient, clipping, the learning rate, Adam.
template <class Model>
struct TrainingStep {
  Schedule rate;

  std::pair<Learning<Model>, Tensor> operator()(Learning<Model> now, const Recordings& data) const {
    auto [loss, gradient] = value_and_grad(RecogniserLoss())(now.model, data);
    now.optimiser.set_learning_rate(rate(now.optimiser.step()));
    now.optimiser.update(now.model, gradient);
    return {std::move(now), std::move(loss)};
  }
};

Schedule rate_of(int steps) {
  constexpr double kPeak = 0.003;
  const int rise = std::min(100, steps);
  return Schedule::warm_up(kPeak, rise)
      .then(Schedule::cosine(kPeak, kPeak / 50, std::max(steps - rise, 1)));
}

/// Returns the digits as text, of each row of labels.
std::vector<std::string> digits_of(const Tensor& labels) {
  std::vector<std::string> texts;
  for (const std::vector<int>& row : rows_of<std::vector<int>>(labels)) {
    std::string& text = texts.emplace_back();
    for (const int label : row) text += static_cast<char>('0' + label - 1);
  }
  return texts;
}

template <class Cell>
class SpeechTask : public Task {
  using Model = Recogniser<Cell>;

 public:
  SpeechTask(const Options& options, const Metadata& settings)
      : options_(options),
        settings_(settings),
        learnt_(read_recordings(options.data, "train")),
        tested_(read_recordings(options.data, "test")),
        table_(fingerprint(table_of(learnt_))),
        batches_(learnt_.data, learnt_.data.labels.dims()[0],
                 {.rows = options.batch,
                  .shuffle = options.seed,
                  .bucket = 8 * options.batch,
                  .drop_last = true,
                  .epochs = 1'000'000'000}),
        now_(begin()),
        step_{rate_of(options.steps)},
        traced_step_(jit(step_, {.name = "training step"})) {
    if (batches_.size() == 0)
      throw UserError("--batch " + std::to_string(options.batch) + " is more than the " +
                      std::to_string(learnt_.files.size()) + " recordings there are");
    if (!options.picture.empty()) check_folder_of(options.picture);
  }

  Measured step(bool is_traced) override {
    if (next_)
      ++*next_;
    else
      next_.emplace(batches_.begin());
    now_.data = batches_.position();
    auto [now, loss] =
        is_traced ? traced_step_(std::move(now_), **next_) : step_(std::move(now_), **next_);
    now_ = std::move(now);
    return {loss.template item<float>()};
  }
  std::int64_t steps_done() const override {
    return now_.optimiser.step().template item<std::int64_t>();
  }
  void save(const std::string& path, const Metadata& more) override {
    Metadata metadata = settings_;
    metadata.insert(more.begin(), more.end());
    metadata["recordings"] = table_;
    save_checkpoint(path, now_, metadata);
  }
  void load(const SafetensorsFile& file) override {
    const auto table = file.metadata().find("recordings");
    if (table == file.metadata().end() || table->second != table_)
      throw UserError(file.path() +
                      " can continue only with the recordings of its training, but those in " +
                      options_.data + " differ");
    load_checkpoint(file, now_);
    batches_.seek(now_.data);
  }

  void write_events(EventWriter& events) override {
    if (traced_step_.trace_count()) events.graph(traced_step_.graph());
  }
  std::string show() const override {
    Model model = now_.model;
    set_training(model, false);
    const auto [logits, labels] = jit([](const Model& model, const Tensor& features) {
      const Tensor logits = model(features);
      return std::pair{logits, recognise(logits)};
    })(model, tested_.data.features);
    if (!options_.picture.empty()) draw_longest(logits);
    return report(labels);
  }
  std::string unit() const override { return "nats per recording"; }
  std::string item() const override { return "recordings"; }
  double items_per_step() const override { return options_.batch; }

 private:
  Learning<Model> begin() const {
    auto model = Model::random(options_.hidden, options_.layers);
    Adam<Model> optimiser(model, {.clip_norm = 1});
    return {std::move(model), std::move(optimiser), {}};
  }
  static std::string table_of(const SpokenDigits& data) {
    std::string text;
    for (std::size_t i = 0; i < data.files.size(); ++i)
      text += data.files[i] + ',' + data.voices[i] + ',' + data.digits[i] + '\n';
    return text;
  }

  /// Returns the label error rate, alone for each voice, and the first recordings with errors.
  std::string report(const Tensor& labels) const {
    const Dim heard = labels.dim("packed"), said = tested_.data.labels.dim("label_time");
    const auto errors =
        edit_distance(labels, tested_.data.labels, {heard, said}).template to_vector<int>();
    const std::vector<std::string> texts = digits_of(labels);
    struct Count {
      std::size_t errors = 0, digits = 0;
      double percent() const {
        return 100.0 * static_cast<double>(errors) /
               static_cast<double>(std::max<std::size_t>(digits, 1));
      }
    } all;
    std::map<std::string, Count> by_voice;
    std::string examples;
    int shown = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      for (Count* count : {&all, &by_voice[tested_.voices[i]]}) {
        count->errors += static_cast<std::size_t>(errors[i]);
        count->digits += tested_.digits[i].size();
      }
      if (errors[i] && shown++ < 3)
        examples +=
            "  " + tested_.files[i] + ": " + tested_.digits[i] + " was heard as " + texts[i] + '\n';
    }
    char line[160];
    std::snprintf(line, sizeof line, "%.2f %% label errors in %zu digits of voices never heard:\n",
                  all.percent(), all.digits);
    std::string result = line;
    for (const auto& [voice, count] : by_voice) {
      std::snprintf(line, sizeof line, "  %-24s %6.2f %%\n", voice.c_str(), count.percent());
      result += line;
    }
    return result + examples;
  }

  void draw_longest(const Tensor& logits) const {
    const Dim recording = logits.dim("recording");
    const auto longest = std::max_element(
        tested_.digits.begin(), tested_.digits.end(),
        [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
    const auto i = longest - tested_.digits.begin();
    const auto at = [&](const Tensor& x) { return gather(x, scalar(i), recording); };
    save_alignment(options_.picture, tested_.files[static_cast<std::size_t>(i)] + ": " + *longest,
                   at(tested_.data.features), at(logits), at(tested_.data.labels));
  }

  Options options_;
  Metadata settings_;
  SpokenDigits learnt_, tested_;
  std::string table_;  ///< the fingerprint of the recordings' names and digits
  Batches<Recordings> batches_;
  std::optional<typename Batches<Recordings>::Iterator> next_;
  Learning<Model> now_;
  TrainingStep<Model> step_;
  Jitted<TrainingStep<Model>> traced_step_;
};

}  // namespace

std::unique_ptr<Task> make_speech_task(const Options& options, const Metadata& settings,
                                       const std::optional<SafetensorsFile>& resumed) {
  std::unique_ptr<Task> task = make_task<SpeechTask>(options, options, settings);
  if (resumed) task->load(*resumed);
  return task;
}
