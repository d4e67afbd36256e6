// examples/speech/stored_model.h — loads the model of a checkpoint, for programs that recognise
// with it.
#pragma once

#include <filesystem>
#include <string>

#include "../training/user_error.h"
#include "model.h"
#include "options.h"

template <class Cell>
Recogniser<Cell> load_model(const reel::SafetensorsFile& checkpoint, const Options& options) {
  auto model = Recogniser<Cell>::random(options.hidden, options.layers);
  reel::load_safetensors(checkpoint, model, {.prefix = "model"});
  reel::set_training(model, false);
  return model;
}

/// Calls f(model) with the model in a checkpoint. Throws UserError if there is none, or it is not
/// of speech; IoError for a damaged file.
template <class F>
void with_stored_model(const std::string& path, const F& f) {
  if (!std::filesystem::exists(path))
    throw UserError("there is no " + path +
                    "; train a model with speech, or name its file with --checkpoint");
  const reel::SafetensorsFile checkpoint(path);
  Options options;
  settings_in(options).take(checkpoint, {}, true, "speech");
  if (options.cell == "gru")
    f(load_model<reel::GruCell>(checkpoint, options));
  else if (options.cell == "rnn")
    f(load_model<reel::RnnCell>(checkpoint, options));
  else
    f(load_model<reel::LstmCell>(checkpoint, options));
}
