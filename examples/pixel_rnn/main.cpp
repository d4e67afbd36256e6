// Trains a recurrent network that classifies pictures by reading their pixels one after another.
#include <filesystem>

#include "../training/program.h"
#include "options.h"
#include "pixel_task.h"

namespace {

void add_flags(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "folder with the data set, as idx files")
      ->type_name("FOLDER");
  app.add_flag("--pixels", options.has_single_pixels,
               "read single pixels (784 in a picture), not squares of two by two (196)");
  add_training_flags(app, options, "pictures in a step", "--pixels");
  app.add_option("--accuracy-plot", options.accuracy_plot, "SVG file for the curve of the accuracy")
      ->type_name("FILE");
  app.add_option("--confusion-plot", options.confusion_plot,
                 "SVG file for the confusion matrix of the test")
      ->type_name("FILE");
}

int run(Options& options, const std::set<std::string>& given) {
  const std::optional<reel::SafetensorsFile> resumed = open_resumed(options);
  if (resumed) settings_in(options).take(*resumed, given, true, "pixel_rnn");
  // The next run may be started in another folder.
  options.data = std::filesystem::absolute(options.data).string();
  reel::manual_seed(options.seed);
  const reel::Metadata settings = settings_in(options).to_metadata(options.checkpoint);
  return train_and_show(*make_pixel_task(options, settings, resumed), options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains a recurrent network to tell what a picture shows from its pixels, read one after "
      "another.",
      "pixel_rnn");
  app.option_defaults()->always_capture_default();
  add_flags(app, options);
  return run_program(app, argc, argv, [&] { return run(options, flags_given(app)); });
}
