// Trains a recogniser of spoken digits on recordings of many voices, eagerly and traced, and tests
// it on voices that it never heard. With --listen it recognises files.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "../training/program.h"
#include "alignment.h"
#include "recordings.h"
#include "speech_task.h"
#include "stored_model.h"

namespace {

void add_flags(CLI::App& app, Options& options) {
  app.add_option(
         "--data", options.data,
         "folder with train.csv, test.csv and the recordings that these name; scripts/speech "
         "makes one")
      ->type_name("FOLDER");
  add_training_flags(app, options, "recordings in a step", "recordings");
  app.add_option(
         "--picture", options.picture,
         "SVG file for the alignment of one recording: the longest of the test, or the first "
         "of --listen")
      ->type_name("FILE");
  app.add_option("--listen", options.listen,
                 "recognise the digits in WAV or FLAC files with the model in the checkpoint, "
                 "without training")
      ->type_name("FILE")
      ->excludes("--resume");
}

/// Prints the digits of each file, with the seconds from begin to end of each.
int listen(const Options& options) {
  with_stored_model(options.checkpoint, [&](const auto& model) {
    bool is_first = true;
    for (const std::string& file : options.listen) {
      const reel::Tensor features = features_of_file(file), logits = model(features);
      const reel::Tensor packed = recognise(logits);
      const reel::Tensor labels =
          reel::rename(packed, packed.dim(0), reel::Dim("label_time", packed.dim(0).lengths()));
      std::cout << file << ':';
      for (const Span& span : spans_of(logits, labels)) {
        char text[64];
        std::snprintf(text, sizeof text, " %d (%.2f to %.2f s)", span.digit,
                      span.begin * kFrameSeconds, span.end * kFrameSeconds);
        std::cout << text;
      }
      std::cout << '\n';
      if (is_first && !options.picture.empty())
        save_alignment(options.picture, file, features, logits, labels);
      is_first = false;
    }
  });
  return 0;
}

int run(Options& options, const std::set<std::string>& given) {
  if (!options.listen.empty()) return listen(options);
  const std::optional<reel::SafetensorsFile> resumed = open_resumed(options);
  if (resumed) settings_in(options).take(*resumed, given, true, "speech");
  // The next run may be started in another folder.
  options.data = std::filesystem::absolute(options.data).string();
  reel::manual_seed(options.seed);
  const reel::Metadata settings = settings_in(options).to_metadata(options.checkpoint);
  return train_and_show(*make_speech_task(options, settings, resumed), options);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains a recogniser of spoken digits, and tests it on voices that it never heard.",
               "speech");
  app.option_defaults()->always_capture_default();
  add_flags(app, options);
  return run_program(app, argc, argv, [&] { return run(options, flags_given(app)); });
}
