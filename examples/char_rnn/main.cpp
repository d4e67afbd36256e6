// Trains a character-level recurrent network on a text, eagerly and traced, then writes with it.
#include <cmath>
#include <filesystem>
#include <iostream>

#include "../adding_problem/adding_task.h"
#include "../training/program.h"
#include "../training/ranks.h"
#include "options.h"
#include "text_task.h"

namespace {

void add_flags(CLI::App& app, Options& options) {
  app.add_option("--task", options.task,
                 "task to train: text, or adding (sums of marked numbers; needs no data)")
      ->check(CLI::IsMember({"text", "adding"}).description(""))
      ->type_name("TASK");
  app.add_option("--data", options.data,
                 "text to learn from (default: the King James Bible, of the program `bible`)")
      ->type_name("FILE");
  app.add_option("--length", options.length,
                 "characters over which the gradient of a step reaches back")
      ->check(CLI::Range(2, 100'000));
  app.add_option("--shards", options.shards,
                 "parts of a batch whose gradients are added; mpirun -n 2 char_rnn --shards 4 "
                 "computes two on each of two ranks, with the results of one rank")
      ->check(CLI::Range(1, 100'000));
  add_training_flags(app, options, "places in the text that are read in parallel",
                     "--task, --length, --shards");
  app.add_flag("--sample", options.sample,
               "write text with the model in the checkpoint, without training")
      ->excludes("--resume");
  app.add_option("--characters", options.characters, "characters that the model writes at the end")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--temperature", options.temperature,
                 "sampling temperature: below 1 likelier characters, above 1 more variety")
      ->check(CLI::Range(0.01, 100.0))
      ->check(CLI::Number)
      ->check([](const std::string& text) {
        return std::isnan(std::stod(text)) ? "nan is no temperature" : "";
      });
}

using Stored = std::optional<reel::SafetensorsFile>;

std::unique_ptr<Task> make_task(Options& options, const Ranks& ranks, const Stored& stored,
                                const std::set<std::string>& given) {
  if (options.task == "adding" && given.count("data"))
    throw UserError("the adding problem needs no --data");
  // The next run may be started in another folder.
  if (!options.data.empty()) options.data = std::filesystem::absolute(options.data).string();
  reel::manual_seed(options.seed);
  if (options.sample) return make_writer(options, *stored);
  if (options.task == "text") {
    if (std::unique_ptr<Task> task = make_text_task(options, ranks, stored)) return task;
    constexpr const char* kNoText =
        "no text: the program `bible` is not installed (Debian: bible-kjv, bible-kjv-text), and "
        "there is no --data";
    if (options.resume || given.count("task") || options.shards > 1) throw UserError(kNoText);
    std::cout << kNoText << "; training on the adding problem instead\n";
    options.task = "adding";
  }
  return make_adding_task(options, {.length = options.length}, metadata_of(options), stored);
}

int run(Options& options, const std::set<std::string>& given) {
  const Stored stored =
      options.sample ? reel::SafetensorsFile(options.checkpoint) : open_resumed(options);
  if (stored) take_settings(options, *stored, given);
  if (options.task == "adding" && options.shards > 1)
    throw UserError("the adding problem has no --shards");
  const Ranks ranks(options.shards, options);
  const std::unique_ptr<Task> task = make_task(options, ranks, stored, given);
  if (!options.sample) return train_and_show(*task, options);
  reel::manual_seed(options.seed);
  show(*task);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains a character-level recurrent network on a text, eagerly and traced, and lets it "
      "write.",
      "char_rnn");
  app.option_defaults()->always_capture_default();
  add_flags(app, options);
  return run_program(app, argc, argv, [&] { return run(options, flags_given(app)); });
}
