#include "text_task.h"

#include <optional>

#include "model.h"
#include "text.h"

using namespace reel;

namespace {

struct TextLoss {
  CharDims dims;
  std::pair<Tensor, LstmState> operator()(const CharModel& model, const LstmState& state,
                                          const Tensor& text, const Tensor& target) const {
    return text_loss(model, state, text, target, dims);
  }
};

class TextTask : public Task {
 public:
  TextTask(Alphabet alphabet, std::vector<std::uint8_t> symbols, const Options& options)
      : alphabet_(std::move(alphabet)),
        dims_(options.batch, options.length, alphabet_.size(), options.hidden),
        reader_(std::move(symbols), dims_.batch, dims_.time),
        trainer_(CharModel::random(dims_), initial_state(dims_), TextLoss{dims_}) {}

  double step(bool is_traced, double learning_rate) override {
    const auto [text, target] = reader_.next();
    return trainer_.step(text, target, is_traced, learning_rate) / std::log(2.0);
  }
  void save(const std::string& path) const override {
    trainer_.save(path, {{"alphabet", alphabet_.hex()}});
  }
  void load(const std::string& path) override { trainer_.load(path); }
  std::string show() const override {
    constexpr int kSymbols = 400;
    return "what the model writes:\n" + write_text(trainer_.model(), dims_, alphabet_, kSymbols);
  }
  std::string unit() const override { return "bits per character"; }
  std::string item() const override { return "characters"; }
  double items_per_step() const override {
    return static_cast<double>(dims_.batch.size() * dims_.time.size());
  }

 private:
  Alphabet alphabet_;
  CharDims dims_;
  TextReader reader_;
  Trainer<CharModel, LstmState, TextLoss> trainer_;
};

/// The alphabet of the model in a checkpoint: symbols mean what they meant when it was trained.
Alphabet stored_alphabet(const std::string& path) {
  const Metadata metadata = read_safetensors_metadata(path);
  const auto found = metadata.find("alphabet");
  if (found == metadata.end()) throw UserError(path + " holds another model: it has no alphabet");
  return Alphabet::from_hex(found->second);
}

}  // namespace

std::unique_ptr<Task> make_text_task(const Options& options) {
  const std::optional<std::string> text =
      options.data.empty() ? read_bible() : read_text(options.data);
  if (!text) return nullptr;
  const std::string source = options.data.empty() ? "the King James Bible" : options.data;
  Alphabet alphabet = options.resume ? stored_alphabet(options.checkpoint) : Alphabet::of(*text);
  std::vector<std::uint8_t> symbols = alphabet.encode(*text, source);
  auto task = std::make_unique<TextTask>(std::move(alphabet), std::move(symbols), options);
  if (options.resume) task->load(options.checkpoint);
  return task;
}
