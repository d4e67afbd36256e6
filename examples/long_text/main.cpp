// Trains a character model on a text as one unbroken sequence per batch row. Gradients reach over
// 100,000 characters and more, within a memory budget. Compares gradients of different lengths.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>

#include "../char_rnn/text.h"
#include "../training/program.h"
#include "../training/trainer.h"
#include "../training/write_file.h"
#include "curves.h"
#include "model.h"
#include "streamed_text.h"

namespace {

struct Options {
  std::string data, stream, losses = "long_text.csv", plot = "long_text.svg";
  std::vector<int> lengths{100, 1'000, 10'000, 100'000};
  int batch = 8, hidden = 128, budget = 64, truncate = 0, threads = 0;
  std::int64_t characters = 4'000'000;
  std::uint64_t seed = 1;
};

struct Loss {
  Reach reach;
  auto operator()(const LongTextModel& model, const reel::LstmCell::State& state,
                  const reel::Tensor& text, const reel::Tensor& target) const {
    return long_text_loss(model, state, text, target, reach);
  }
};

/// Returns the resident memory of this process in MiB: now, or (VmHWM:) its peak.
double resident(const char* field) {
  std::ifstream status("/proc/self/status");
  const std::string name = field;
  for (std::string line; std::getline(status, line);)
    if (line.rfind(name, 0) == 0) return std::stod(line.substr(name.size())) / 1024;
  return 0;
}
/// Resets the peak, if the system allows it.
void forget_most() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::string name_of(const Options& options, int length) {
  std::string name = "T = " + std::to_string(length);
  if (options.truncate && options.truncate < length)
    name += ", cut at " + std::to_string(options.truncate);
  return name;
}

/// Returns pieces of a text, and the symbols that follow each.
using NextWindow = std::function<std::pair<reel::Tensor, reel::Tensor>()>;

/// Trains from the start with pieces of one length. Returns bits per character over characters
/// read.
Curve train(const Options& options, int symbols, const reel::Dim& batch, int length,
            const NextWindow& next_window) {
  using Clock = std::chrono::steady_clock;
  reel::manual_seed(options.seed);
  const auto per_update = static_cast<std::int64_t>(options.batch) * length;
  const std::int64_t updates = std::max<std::int64_t>(options.characters / per_update, 1);
  const auto model = LongTextModel::random(symbols, options.hidden);
  const Reach reach{options.truncate,
                    reel::Checkpoint::budget(static_cast<std::int64_t>(options.budget) << 20)};
  Trainer<LongTextModel, reel::LstmCell::State, Loss> trainer(
      model, model.cell.initial_state({batch}), Loss{reach}, static_cast<int>(updates));
  Curve curve{name_of(options, length), {}};
  forget_most();
  const auto begin = Clock::now();
  auto shown = begin;
  double sum = 0;
  int count = 0;
  // Points are a hundredth of the updates apart, or one update.
  const std::int64_t between = std::max<std::int64_t>(updates / 100, 1);
  for (std::int64_t update = 1; update <= updates; ++update) {
    const auto [text, target] = next_window();
    const double bits = trainer.step(text, target, true) / std::log(2.0);
    sum += bits;
    ++count;
    const auto now = Clock::now();
    if (now - shown > std::chrono::seconds(1) || update == updates) {
      std::printf(
          "%s: update %lld of %lld, %.2f million characters, %.3f bits per character, "
          "%.0f MiB resident, %.0f at most, %.0f s\n",
          curve.name.c_str(), static_cast<long long>(update), static_cast<long long>(updates),
          1e-6 * static_cast<double>(update * per_update), sum / count, resident("VmRSS:"),
          resident("VmHWM:"), std::chrono::duration<double>(now - begin).count());
      std::fflush(stdout);
      shown = now;
    }
    if (update % between && update != updates) continue;
    curve.points.emplace_back(static_cast<double>(update * per_update), sum / count);
    sum = 0;
    count = 0;
  }
  return curve;
}

void save(const Options& options, const std::vector<Curve>& curves) {
  std::string text = "what,characters,bits_per_character\n";
  for (const Curve& curve : curves)
    for (const auto& [characters, bits] : curve.points)
      text +=
          '"' + curve.name + "\"," + std::to_string(characters) + ',' + std::to_string(bits) + '\n';
  write_file(options.losses, text);
  save_curves(options.plot, curves, "characters seen", "bits per character");
}

int run(const Options& options) {
  if (options.threads) reel::set_threads(options.threads);
  check_folder_of(options.losses);
  check_folder_of(options.plot);
  std::optional<std::string> text = options.data.empty() ? read_bible() : read_text(options.data);
  if (!text)
    throw UserError(
        "no text: the program `bible` is not installed (Debian: bible-kjv, "
        "bible-kjv-text), and there is no --data");
  const Alphabet alphabet = Alphabet::of(*text);
  std::vector<std::uint8_t> symbols = alphabet.encode(*text);
  text.reset();
  // Equally many symbols for each reader, so that each continues where the next one began.
  symbols.resize(symbols.size() - symbols.size() % static_cast<std::size_t>(options.batch));
  for (const int length : options.lengths)
    check_windows(options.data.empty() ? "the text" : options.data,
                  std::ssize(symbols) / options.batch, length);
  if (!options.stream.empty())
    StreamedText::write(options.stream, std::exchange(symbols, {}), options.batch);
  std::vector<Curve> curves;
  for (const int length : options.lengths) {
    const reel::Dim batch("batch", options.batch), time("time", length);
    NextWindow next_window;
    if (options.stream.empty())
      next_window = [reader = TextReader(symbols, batch, time)]() mutable { return reader.next(); };
    else
      next_window = [reader = std::make_shared<StreamedText>(options.stream, batch, time)] {
        return reader->next();
      };
    curves.push_back(train(options, alphabet.size(), batch, length, next_window));
    save(options, curves);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains a character model on a text as one unbroken sequence per row, and shows what longer "
      "gradients buy.",
      "long_text");
  app.option_defaults()->always_capture_default();
  app.add_option("--data", options.data, "text to learn from (default: the King James Bible)")
      ->type_name("FILE");
  app.add_option("--stream", options.stream,
                 "an .npy file to which the text is written, and from which it is read in chunks")
      ->type_name("FILE");
  app.add_option("--length", options.lengths,
                 "characters per row and update; for each, a model is trained from the start")
      ->delimiter(',')
      ->check(CLI::Range(2, 100'000'000));
  app.add_option("--truncate", options.truncate,
                 "characters over which gradients reach back; 0: all characters of an update")
      ->check(CLI::Range(0, 100'000'000));
  app.add_option("--budget", options.budget, "MiB for residuals and checkpoints of the gradient")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--batch", options.batch, "rows: places in the text that are read in parallel")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--hidden", options.hidden, "units of the LSTM")->check(CLI::Range(2, 10'000));
  app.add_option("--characters", options.characters, "characters that each model reads")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000'000}));
  add_seed_flag(app, options.seed, "seed of the initial weights");
  app.add_option("--threads", options.threads,
                 "largest number of threads; 0: one for each processor")
      ->check(CLI::Range(0, 1024));
  app.add_option("--losses", options.losses, "CSV file for the losses")->type_name("FILE");
  app.add_option("--plot", options.plot, "SVG file for the curves of the losses")
      ->type_name("FILE");
  return run_program(app, argc, argv, [&] { return run(options); });
}
