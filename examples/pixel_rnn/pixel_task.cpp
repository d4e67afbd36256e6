#include "pixel_task.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include "../training/fingerprint.h"
#include "../training/network.h"
#include "../training/trainer.h"
#include "../training/user_error.h"
#include "../training/write_file.h"
#include "confusion.h"
#include "images.h"

using namespace reel;

namespace {

/// The classes of Fashion-MNIST.
const std::vector<std::string> kClasses{"T-shirt", "trouser", "pullover", "dress", "coat",
                                        "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};

/// Pictures as sequences of pixels, line by line, or of squares of two by two pixels.
class Sequences {
 public:
  Sequences(const std::string& folder, const std::string& name, bool has_single_pixels)
      : images_(read_images(folder, name)), side_(has_single_pixels ? 1 : 2) {
    if (images_.height % side_ || images_.width % side_)
      throw UserError("pictures of " + std::to_string(images_.height) + " x " +
                      std::to_string(images_.width) +
                      " pixels cannot be cut into squares; --pixels reads single pixels");
    for (const std::uint8_t label : images_.labels)
      if (label >= kClasses.size())
        throw UserError("a label of " + std::to_string(label) + ", but there are " +
                        std::to_string(kClasses.size()) + " classes");
  }

  std::size_t count() const { return images_.count; }
  std::size_t steps() const { return images_.height * images_.width / (side_ * side_); }
  std::size_t pixels() const { return side_ * side_; }
  std::size_t label(std::size_t picture) const { return images_.labels[picture]; }
  /// Returns the fingerprint by which a checkpoint recognises its data.
  std::string print() const {
    const auto of = [](const std::vector<std::uint8_t>& bytes) {
      return fingerprint({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    return of(images_.pixels) + of(images_.labels);
  }

  /// Returns pictures as {batch, time, in}, each pixel from 0 to 1.
  Tensor pictures(const std::vector<std::size_t>& which, const Dims& dims) const {
    std::vector<float> values;
    values.reserve(which.size() * images_.height * images_.width);
    for (const std::size_t picture : which)
      for (std::size_t y = 0; y < images_.height; y += side_)
        for (std::size_t x = 0; x < images_.width; x += side_)
          for (std::size_t pixel = 0; pixel < side_ * side_; ++pixel)
            values.push_back(static_cast<float>(at(picture, y + pixel / side_, x + pixel % side_)) /
                             255);
    return tensor(values, dims);
  }
  /// Returns labels as i32 {batch}.
  Tensor labels(const std::vector<std::size_t>& which, const Dim& batch) const {
    std::vector<int> values;
    for (const std::size_t picture : which) values.push_back(images_.labels[picture]);
    return tensor(values, {batch});
  }

 private:
  std::uint8_t at(std::size_t picture, std::size_t y, std::size_t x) const {
    return images_.pixels[(picture * images_.height + y) * images_.width + x];
  }

  Images images_;
  std::size_t side_;
};

/// Selects the pictures of a step: each round visits all of them in another order.
class Rounds {
 public:
  Rounds(std::size_t count, std::size_t batch, std::uint64_t seed)
      : batch_(batch), seed_(seed), order_(count) {
    if (batch > count)
      throw UserError("--batch " + std::to_string(batch) + " is more than the " +
                      std::to_string(count) + " pictures there are");
  }

  /// Pictures at the end of a round that do not fill a batch are skipped.
  std::vector<std::size_t> at(std::int64_t step) {
    const auto steps = static_cast<std::int64_t>(order_.size() / batch_);
    if (step / steps != round_) {
      round_ = step / steps;
      std::iota(order_.begin(), order_.end(), std::size_t{0});
      std::seed_seq seed{seed_, static_cast<std::uint64_t>(round_)};
      std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed));
    }
    const auto first = order_.begin() + step % steps * static_cast<std::ptrdiff_t>(batch_);
    return {first, first + static_cast<std::ptrdiff_t>(batch_)};
  }

 private:
  std::size_t batch_;
  std::uint64_t seed_;
  std::int64_t round_ = -1;
  std::vector<std::size_t> order_;
};

template <class Cell>
struct PixelModel {
  Network<Cell> network;
  Linear readout;

  static PixelModel random(const Dim& in, const Dim& classes, const Options& options) {
    auto network = make_network<Cell>(in, options.hidden, options.layers);
    auto readout = Linear::init(network.out_dim(), classes);
    return {std::move(network), std::move(readout)};
  }
  /// x: {batch, time, in}. Returns logits {batch, class} from the network's output at the last
  /// pixel.
  Tensor operator()(const Tensor& x) const {
    const Dim time = x.dim("time");
    return readout(gather(recur(network, x, time).outputs, scalar(-1), time));
  }
};

/// The state carries the accuracy of a step; it is never read.
template <class Cell>
struct PixelLoss {
  std::pair<Tensor, Tensor> operator()(const PixelModel<Cell>& model, const Tensor&,
                                       const Tensor& x, const Tensor& label) const {
    const Tensor logits = model(x);
    const Dim& classes = model.readout.out;
    return {cross_entropy(logits, label, classes), accuracy(logits, label, classes).mean()};
  }
};

template <class Cell>
class PixelTask : public Task {
 public:
  PixelTask(const Options& options, const Metadata& settings)
      : options_(options),
        settings_(settings),
        learnt_(options.data, "train", options.has_single_pixels),
        tested_(options.data, "t10k", options.has_single_pixels),
        learnt_print_(learnt_.print()),
        rounds_(learnt_.count(), static_cast<std::size_t>(options.batch), options.seed),
        batch_("batch", options.batch),
        time_("time", static_cast<std::int64_t>(learnt_.steps())),
        in_("in", static_cast<std::int64_t>(learnt_.pixels())),
        trainer_(PixelModel<Cell>::random(in_, classes_, options), scalar(0.0), {}, options.steps) {
    if (tested_.steps() != learnt_.steps())
      throw UserError("the test pictures in " + options.data + " are of another size");
    if (!options.confusion_plot.empty()) check_folder_of(options.confusion_plot);
  }

  Measured step(bool is_traced) override {
    const std::vector<std::size_t> which = rounds_.at(steps_done());
    const double loss = trainer_.step(learnt_.pictures(which, {batch_, time_, in_}),
                                      learnt_.labels(which, batch_), is_traced);
    return {loss, trainer_.state().template item<float>()};
  }
  std::int64_t steps_done() const override { return trainer_.steps_done(); }
  void save(const std::string& path, const Metadata& more) override {
    Metadata metadata = settings_;
    metadata.insert(more.begin(), more.end());
    metadata["pictures"] = learnt_print_;
    trainer_.save(path, metadata);
  }
  void load(const SafetensorsFile& file) override {
    const auto pictures = file.metadata().find("pictures");
    if (pictures == file.metadata().end() || pictures->second != learnt_print_)
      throw UserError(file.path() +
                      " can continue only with the pictures of its training, but those in " +
                      options_.data + " differ");
    trainer_.load(file);
  }

  void write_events(EventWriter& events) override { trainer_.write_events(events); }
  std::string show() const override {
    const Confusion confusion = test();
    if (!options_.confusion_plot.empty()) confusion.save(options_.confusion_plot);
    char text[80];
    std::snprintf(text, sizeof text, "%.2f %% of %zu test pictures right:\n",
                  100 * confusion.accuracy(), tested_.count());
    return text + confusion.print();
  }
  std::string unit() const override { return "nats per picture"; }
  std::string item() const override { return "pictures"; }
  double items_per_step() const override { return options_.batch; }
  bool has_accuracy() const override { return true; }

 private:
  /// Tests 250 pictures at a time; the last batch has the rest.
  Confusion test() const {
    constexpr std::size_t kAtOnce = 250;
    Confusion confusion(kClasses);
    const auto answer = jit([](const PixelModel<Cell>& model,
                               const Tensor& x) { return argmax(model(x), model.readout.out); },
                            {.name = "test"});
    for (std::size_t begin = 0; begin < tested_.count(); begin += kAtOnce) {
      std::vector<std::size_t> which(std::min(kAtOnce, tested_.count() - begin));
      std::iota(which.begin(), which.end(), begin);
      const Dim batch("batch", static_cast<std::int64_t>(which.size()));
      const std::vector<int> answers =
          answer(trainer_.model(), tested_.pictures(which, {batch, time_, in_}))
              .template to_vector<int>();
      for (std::size_t i = 0; i < which.size(); ++i)
        confusion.add(tested_.label(which[i]), static_cast<std::size_t>(answers[i]));
    }
    return confusion;
  }

  Options options_;
  Metadata settings_;
  Sequences learnt_, tested_;
  std::string learnt_print_;
  Rounds rounds_;
  Dim batch_, time_, in_, classes_{"class", static_cast<std::int64_t>(kClasses.size())};
  Trainer<PixelModel<Cell>, Tensor, PixelLoss<Cell>> trainer_;
};

}  // namespace

std::unique_ptr<Task> make_pixel_task(const Options& options, const Metadata& settings,
                                      const std::optional<SafetensorsFile>& resumed) {
  std::unique_ptr<Task> task = make_task<PixelTask>(options, options, settings);
  if (resumed) task->load(*resumed);
  return task;
}
