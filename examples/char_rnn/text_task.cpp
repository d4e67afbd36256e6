#include "text_task.h"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "../training/fingerprint.h"
#include "../training/trainer.h"
#include "model.h"
#include "stored_model.h"
#include "text.h"

#ifdef REEL_HAS_DISTRIBUTED
#include "../training/sharded_gradient.h"
#endif

using namespace reel;

namespace {

std::string source_of_text(const Options& options) {
  return options.data.empty() ? "the King James Bible" : options.data;
}

/// A text as the task reads it.
struct Text {
  std::vector<std::uint8_t> symbols;
  std::string fingerprint;
};

template <class Cell, class Gradient>
class TextTask : public Task {
 public:
  TextTask(const Options& options, const Alphabet& alphabet, std::optional<Text> text,
           Gradient gradient = {})
      : options_(options),
        alphabet_(alphabet),
        batch_("batch", options.batch),
        time_("time", options.length),
        trainer_(TextTask::trainer(options, alphabet, batch_, time_, gradient)) {
    if (!text) return;
    fingerprint_ = text->fingerprint;
    reader_.emplace(std::move(text->symbols), batch_, time_);
  }

  Measured step(bool is_traced) override {
    const auto [text, target] = reader_->next();
    return {trainer_.step(text, target, is_traced) / std::log(2.0)};
  }
  std::int64_t steps_done() const override { return trainer_.steps_done(); }
  void save(const std::string& path, const Metadata& more) override {
    Metadata metadata = metadata_of(options_);
    metadata.insert(more.begin(), more.end());
    metadata["alphabet"] = alphabet_.hex();
    metadata["text"] = fingerprint_;
    metadata["position"] = std::to_string(reader_->position());
    trainer_.save(path, metadata);
  }
  void load(const SafetensorsFile& file) override {
    if (reader_) {
      Metadata metadata = file.metadata();
      if (metadata["text"] != fingerprint_)
        throw UserError(file.path() + " can continue only with the text of its training so far (" +
                        metadata["text"] + "), but " + source_of_text(options_) +
                        " is another one (" + fingerprint_ + ')');
      reader_->set_position(std::strtoull(metadata["position"].c_str(), nullptr, 10));
    }
    trainer_.load(file);
  }
  void write_events(EventWriter& events) override { trainer_.write_events(events); }
  std::string show() const override {
    return write_text(trainer_.model(), alphabet_, options_.characters, options_.temperature);
  }
  std::string unit() const override { return "bits per character"; }
  std::string item() const override { return "characters"; }
  double items_per_step() const override {
    return static_cast<double>(batch_.size() * time_.size());
  }

 private:
  using Model = CharModel<Cell>;
  using State = typename Model::State;
  struct Loss {
    Dim time;
    std::pair<Tensor, State> operator()(const Model& model, const State& state, const Tensor& text,
                                        const Tensor& target) const {
      return text_loss<Cell>(model, state, text, target, time);
    }
  };
  using TextTrainer = Trainer<Model, State, Loss, Gradient>;
  static TextTrainer trainer(const Options& options, const Alphabet& alphabet, const Dim& batch,
                             const Dim& time, const Gradient& gradient) {
    const Model model = Model::random(alphabet.size(), options.hidden, options.layers);
    return {model, model.network.initial_state({batch}), Loss{time}, options.steps, gradient};
  }

  Options options_;
  Alphabet alphabet_;
  Dim batch_, time_;
  TextTrainer trainer_;
  std::optional<TextReader> reader_;
  std::string fingerprint_;
};

template <class Cell>
using PlainTask = TextTask<Cell, PlainGradient>;

#ifdef REEL_HAS_DISTRIBUTED
template <class Cell>
using ShardedTask = TextTask<Cell, ShardedGradient>;

/// The state of the network is whole in a checkpoint, so all shards and ranks have equal parts.
void check_shards(const Options& options, int ranks) {
  if (options.batch % options.shards != 0 || options.shards % ranks != 0)
    throw UserError("--shards " + std::to_string(options.shards) + " must divide --batch " +
                    std::to_string(options.batch) + ", and be a multiple of the ranks, " +
                    std::to_string(ranks));
}
#endif

std::unique_ptr<Task> make_task_on(const Options& options, [[maybe_unused]] const Ranks& ranks,
                                   const Alphabet& alphabet, Text text) {
#ifdef REEL_HAS_DISTRIBUTED
  check_shards(options, ranks.world().size());
  if (options.shards > 1)
    return make_task<ShardedTask>(options, options, alphabet, std::move(text),
                                  ShardedGradient{&ranks.world()});
#else
  if (options.shards > 1)
    throw UserError(
        "--shards needs reel::distributed, which this build lacks: there was no MPI for C (Debian: "
        "libopenmpi-dev openmpi-bin)");
#endif
  return make_task<PlainTask>(options, options, alphabet, std::move(text));
}

}  // namespace

std::unique_ptr<Task> make_text_task(const Options& options, const Ranks& ranks,
                                     const std::optional<SafetensorsFile>& resumed) {
  const std::optional<std::string> text =
      options.data.empty() ? read_bible() : read_text(options.data);
  if (!text) return nullptr;
  const Alphabet alphabet = Alphabet::of(*text);
  auto task =
      make_task_on(options, ranks, alphabet, Text{alphabet.encode(*text), fingerprint(*text)});
  if (resumed) task->load(*resumed);
  return task;
}

std::unique_ptr<Task> make_writer(const Options& options, const SafetensorsFile& checkpoint) {
  auto task = make_task<PlainTask>(options, options, stored_alphabet(checkpoint), std::nullopt);
  task->load(checkpoint);
  return task;
}
