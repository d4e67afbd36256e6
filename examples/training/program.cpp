#include "program.h"

#include <csignal>
#include <iostream>
#include <new>

#include "training.h"
#include "user_error.h"

namespace {

constexpr int kFailed = 1, kWrongFlags = 2, kSignal = 128;

/// Prints an error as one line, even if it has several.
int fail(const std::string& program, std::string message, int code) {
  for (std::size_t at; (at = message.find('\n')) != std::string::npos;)
    message.replace(at, message.find_first_not_of("\n ", at) - at,
                    message[at - 1] == ':' ? " " : "; ");
  std::cerr << program << ": " << message << '\n';
  return code;
}

}  // namespace

void add_seed_flag(CLI::App& app, std::uint64_t& seed, const std::string& of) {
  app.add_option("--seed", seed, of)->check([](const std::string& text) {
    return text.find('-') == std::string::npos ? "" : "a seed is not negative, got " + text;
  });
}

void add_threads_flag(CLI::App& app, const std::string& promise) {
  app.add_option_function<int>(
         "--threads", reel::set_threads,
         "largest number of threads of the library (default: one for each processor)" + promise)
      ->check(CLI::Range(1, 1024));
}

void add_training_flags(CLI::App& app, TrainingOptions& options, const std::string& batch,
                        const std::string& kept) {
  app.add_option("--steps", options.steps, "steps of training, including those of earlier runs")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--stop-after", options.stop_after,
                 "steps of this run after which it stops, to continue with --resume (0: no stop)")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--batch", options.batch, batch)->check(CLI::Range(1, 100'000));
  app.add_option("--cell", options.cell, "lstm, gru, or rnn")
      ->check(CLI::IsMember({"lstm", "gru", "rnn"}).description(""))
      ->type_name("CELL");
  app.add_option("--layers", options.layers, "number of stacked cells")->check(CLI::Range(1, 100));
  app.add_option("--hidden", options.hidden, "size of a cell")->check(CLI::Range(1, 65'536));
  app.add_option("--mode", options.mode,
                 "eager, traced, or both: some steps eagerly, the others traced")
      ->check(CLI::IsMember({"eager", "traced", "both"}).description(""))
      ->type_name("MODE");
  add_threads_flag(app, "; losses are the same for any number");
  add_seed_flag(app, options.seed, "seed of all random numbers");
  app.add_option(
         "--checkpoint", options.checkpoint,
         "file for the model and its training, written at intervals, at the end, and on Ctrl-C")
      ->type_name("FILE");
  app.add_option("--checkpoint-every", options.checkpoint_every, "steps between two checkpoints")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--losses", options.losses, "CSV file for the loss of every step")
      ->type_name("FILE");
  app.add_option("--plot", options.plot, "SVG file for the curve of the losses")->type_name("FILE");
  app.add_option("--events", options.events,
                 "folder for the losses, parameters and graph of this run, for TensorBoard")
      ->type_name("FOLDER");
  app.add_flag(
      "--resume", options.resume,
      "continue the training in the checkpoint, as if it had not stopped. Flags that are "
      "not given keep their values, except --stop-after, --events and --threads; another " +
          kept + ", --cell, --layers, --hidden, --batch or --seed is refused");
}

std::set<std::string> flags_given(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (option->count()) names.insert(option->get_single_name());
  return names;
}

constexpr const char* kNoMemory =
    "not enough memory for sequences, --batch, --layers and --hidden of this size";

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& run) {
  // A file that grows too large is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  const std::string name = app.get_name();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return fail(name, std::string(error.what()) + "; --help lists the options", kWrongFlags);
  }
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return fail(name, kNoMemory, kFailed);
  } catch (const reel::MemoryError&) {
    return fail(name, kNoMemory, kFailed);
  } catch (const std::exception& error) {
    return fail(name, error.what(), kFailed);
  }
}

namespace {
void print(const std::string& result) {
  std::cout << result << std::endl;
  if (!std::cout) throw UserError("cannot write to standard output");
}
}  // namespace

void show(const Task& task) { print(task.show()); }

int train_and_show(Task& task, const TrainingOptions& options) {
  const int signal = train(task, options);
  std::cout << '\n';
  const std::string result = task.show();
  if (!options.events.empty())
    reel::EventWriter(options.events).text("result", task.steps_done(), result);
  print(result);
  return signal ? kSignal + signal : 0;
}
