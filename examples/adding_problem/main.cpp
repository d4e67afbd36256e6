// Trains a recurrent network to add up the two marked numbers of long sequences, of one length or
// of many, eagerly and traced.
#include "../training/program.h"
#include "../training/settings.h"
#include "adding_task.h"

namespace {

struct Options : TrainingOptions {
  Options() {
    steps = 3000;
    losses = "adding_problem.csv";
    plot = "adding_problem.svg";
    checkpoint = "adding_problem.safetensors";
  }
  AddingProblem problem{.length = 100};
};

Settings settings_in(Options& options) {
  Settings settings;
  settings.add_all(options);
  settings.add("length", &options.problem.length, Settings::Of::training);
  settings.add("ragged", &options.problem.is_ragged, Settings::Of::training);
  return settings;
}

int run(Options& options, const std::set<std::string>& given) {
  const Settings settings = settings_in(options);
  const std::optional<reel::SafetensorsFile> resumed = open_resumed(options);
  if (resumed) settings.take(*resumed, given, true, "adding_problem");
  reel::manual_seed(options.seed);
  const std::unique_ptr<Task> task =
      make_adding_task(options, options.problem, settings.to_metadata(options.checkpoint), resumed);
  return train_and_show(*task, options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains a recurrent network to add up the two marked numbers of long sequences, eagerly and "
      "traced.",
      "adding_problem");
  app.option_defaults()->always_capture_default();
  app.add_option("--length", options.problem.length,
                 "T, the length of a sequence, or of the longest")
      ->check(CLI::Range(2, 1'000'000));
  app.add_flag("--ragged", options.problem.is_ragged, "sequences of T / 10 to T numbers");
  add_training_flags(app, options, "sequences in a step", "--length, --ragged");
  return run_program(app, argc, argv, [&] { return run(options, flags_given(app)); });
}
