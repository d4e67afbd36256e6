// Trains a character-level recurrent network on a text, eagerly and traced, and lets it write.
#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <new>
#include <set>

#include "adding_task.h"
#include "options.h"
#include "text_task.h"
#include "training.h"

namespace {

constexpr int kFailed = 1, kWrongFlags = 2, kSignal = 128;

void add_flags(CLI::App& app, Options& options) {
  app.add_option("--task", options.task,
                 "what is learnt: text, or adding (sums of marked numbers; needs no data)")
      ->check(CLI::IsMember({"text", "adding"}).description(""))
      ->type_name("TASK");
  app.add_option("--data", options.data,
                 "text to learn from (default: the King James Bible, of the program `bible`)")
      ->type_name("FILE");
  app.add_option("--steps", options.steps, "steps of training, those of earlier runs included")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--stop-after", options.stop_after,
                 "stop after so many steps of this run, to go on with --resume (0: never)")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--length", options.length, "characters that a step goes back in time")
      ->check(CLI::Range(2, 100'000));
  app.add_option("--batch", options.batch, "places in the text that are read at once")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--cell", options.cell, "lstm, gru, or rnn")
      ->check(CLI::IsMember({"lstm", "gru", "rnn"}).description(""))
      ->type_name("CELL");
  app.add_option("--layers", options.layers, "cells one above another")->check(CLI::Range(1, 100));
  app.add_option("--hidden", options.hidden, "size of a cell")->check(CLI::Range(1, 65'536));
  app.add_option("--mode", options.mode,
                 "eager, traced, or both: some steps eagerly, the others traced")
      ->check(CLI::IsMember({"eager", "traced", "both"}).description(""))
      ->type_name("MODE");
  app.add_option_function<int>(
         "--threads", reel::set_threads,
         "how many the library uses at most (default: one for each processor); losses are the "
         "same for any number")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seed", options.seed, "of all random numbers")
      ->check([](const std::string& text) {
        return text.find('-') == std::string::npos ? "" : "a seed is not negative, got " + text;
      });
  app.add_option("--checkpoint", options.checkpoint,
                 "where model and training go: now and then, at the end, and on Ctrl-C")
      ->type_name("FILE");
  app.add_option("--checkpoint-every", options.checkpoint_every, "steps between two checkpoints")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--losses", options.losses, "where the loss of every step goes, as CSV")
      ->type_name("FILE");
  app.add_option("--plot", options.plot, "where the curve of the losses goes, as SVG")
      ->type_name("FILE");
  app.add_flag("--resume", options.resume,
               "go on with the training in the checkpoint, as if it had not stopped. All flags are "
               "as they were, but for --stop-after, --threads and those that are given; another "
               "--task, --cell, --layers, --hidden, --batch, --length or --seed is refused");
  app.add_flag("--sample", options.sample, "let the model in the checkpoint write, and no more")
      ->excludes("--resume");
  app.add_option("--characters", options.characters, "how many the model writes at the end")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--temperature", options.temperature,
                 "how freely it writes: below 1 what it thinks likely, above 1 all sorts")
      ->check(CLI::Range(0.01, 100.0))
      ->check(CLI::Number)
      ->check([](const std::string& text) {
        return std::isnan(std::stod(text)) ? "nan is no temperature" : "";
      });
}

/// The flags that the user gave.
std::set<std::string> flags_given(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (option->count()) names.insert(option->get_single_name());
  return names;
}

std::unique_ptr<Task> make_task(Options& options, const std::set<std::string>& given) {
  if (options.resume || options.sample)
    take_settings(options, given, reel::read_safetensors_metadata(options.checkpoint));
  if (options.task == "adding" && given.count("data"))
    throw UserError("the adding problem needs no --data");
  // The next run may be started elsewhere.
  if (!options.data.empty()) options.data = std::filesystem::absolute(options.data).string();
  reel::manual_seed(options.seed);
  if (options.sample) return make_writer(options);
  if (options.task == "text") {
    if (std::unique_ptr<Task> task = make_text_task(options)) return task;
    constexpr const char* kNoText =
        "no text: the program `bible` is not installed (Debian: bible-kjv, bible-kjv-text), and "
        "there is no --data";
    if (options.resume || given.count("task")) throw UserError(kNoText);
    std::cout << kNoText << "; training on the adding problem instead\n";
    options.task = "adding";
  }
  return make_adding_task(options);
}

int run(Options& options, const std::set<std::string>& given) {
  const std::unique_ptr<Task> task = make_task(options, given);
  int signal = 0;
  if (options.sample) {
    reel::manual_seed(options.seed);
  } else {
    signal = train(*task, options);
    std::cout << '\n';
  }
  std::cout << task->show() << std::endl;
  if (!std::cout) throw UserError("cannot write to standard output");
  return signal ? kSignal + signal : 0;
}

/// Every failure is one line, however many an error has.
int fail(std::string message, int code) {
  for (std::size_t at; (at = message.find('\n')) != std::string::npos;)
    message.replace(at, message.find_first_not_of("\n ", at) - at,
                    message[at - 1] == ':' ? " " : "; ");
  std::cerr << "char_rnn: " << message << '\n';
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  // A file that grows too large is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  Options options;
  CLI::App app(
      "Trains a character-level recurrent network on a text, eagerly and traced, and lets it "
      "write.",
      "char_rnn");
  app.option_defaults()->always_capture_default();
  add_flags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return fail(std::string(error.what()) + "; --help lists the options", kWrongFlags);
  }
  try {
    return run(options, flags_given(app));
  } catch (const std::bad_alloc&) {
    return fail("not enough memory for --batch, --length, --layers and --hidden of this size",
                kFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailed);
  }
}
