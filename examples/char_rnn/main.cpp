// Trains a character-level LSTM on a text, eagerly and traced, and lets it write.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <map>
#include <new>

#include "adding_task.h"
#include "text.h"
#include "text_task.h"
#include "training.h"

namespace {

const std::map<std::string, Mode> kModes{
    {"eager", Mode::eager}, {"traced", Mode::traced}, {"both", Mode::both}};
constexpr int kFailed = 1, kWrongFlags = 2, kInterrupted = 128 + SIGINT;

void add_flags(CLI::App& app, Options& options) {
  app.add_option("--data", options.data,
                 "text to learn from (default: the King James Bible, of the program `bible`)")
      ->type_name("FILE");
  app.add_option("--steps", options.steps,
                 "steps of training; with 0 and --resume the model only writes")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--length", options.length, "characters that a step goes back in time")
      ->check(CLI::Range(2, 100'000));
  app.add_option("--batch", options.batch, "places in the text that are read at once")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--hidden", options.hidden, "size of the LSTM")->check(CLI::Range(1, 65'536));
  app.add_option_function<std::string>(
         "--mode", [&options](const std::string& name) { options.mode = kModes.at(name); },
         "eager, traced, or both: some steps eagerly, the others traced")
      ->check(CLI::IsMember(&kModes).description(""))
      ->type_name("MODE")
      ->default_str("both");
  app.add_option("--seed", options.seed, "of all random numbers");
  app.add_option("--checkpoint", options.checkpoint,
                 "where the model goes at the end, and on Ctrl-C")
      ->type_name("FILE");
  app.add_option("--losses", options.losses, "where the loss of every step goes, as CSV")
      ->type_name("FILE");
  app.add_flag(
      "--resume", options.resume,
      "go on with the model in the checkpoint; its alphabet must have all bytes of the text");
}

int run(const Options& options) {
  reel::manual_seed(options.seed);
  std::unique_ptr<Task> task = make_text_task(options);
  if (!task) {
    std::cout << "no text: the program `bible` is not installed (Debian: bible-kjv, "
                 "bible-kjv-text), and there is no "
                 "--data; training on the adding problem instead\n";
    task = make_adding_task(options);
  }
  const bool was_interrupted = options.steps > 0 && train(*task, options);
  std::cout << task->show() << std::endl;
  if (!std::cout) throw UserError("cannot write to standard output");
  return was_interrupted ? kInterrupted : 0;
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
  Options options;
  CLI::App app("Trains a character-level LSTM on a text, eagerly and traced, and lets it write.",
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
    return run(options);
  } catch (const std::bad_alloc&) {
    return fail("not enough memory for --batch, --length and --hidden of this size", kFailed);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailed);
  }
}
