// stored_model.h — the model in a checkpoint of char_rnn, for programs that write with it.
#pragma once

#include <string>
#include <vector>

#include "model.h"
#include "options.h"
#include "text.h"

/// The alphabet of the model in a checkpoint: symbols mean what they meant when it was trained.
/// Throws UserError for a model that writes no text.
Alphabet stored_alphabet(const reel::SafetensorsFile& checkpoint);

/// The checkpoint, opened once: all that is taken from it is of one save. Throws UserError where
/// there is none, IoError for one that cannot be read.
reel::SafetensorsFile open_checkpoint(const std::string& path);

/// What a model is, as its checkpoint says. Throws UserError for one that is not of char_rnn.
Options stored_options(const reel::SafetensorsFile& checkpoint);

/// The symbols of what a model shall go on from: the start of a text, and these characters. Throws
/// UserError for one that is not in the alphabet.
std::vector<int> encode_prompt(const Alphabet& alphabet, const std::string& prompt);

template <class Cell>
CharModel<Cell> load_model(const reel::SafetensorsFile& checkpoint, const Options& options,
                           int symbols) {
  auto model = CharModel<Cell>::random(symbols, options.hidden, options.layers);
  reel::load_safetensors(checkpoint, model, {.prefix = "model"});
  return model;
}

/// f(model, alphabet), whatever the model's cell. Throws as open_checkpoint, stored_options and
/// stored_alphabet, and IoError for a damaged file.
template <class F>
void with_stored_model(const std::string& path, const F& f) {
  const reel::SafetensorsFile checkpoint = open_checkpoint(path);
  const Options options = stored_options(checkpoint);
  const Alphabet alphabet = stored_alphabet(checkpoint);
  if (options.cell == "gru")
    f(load_model<reel::GruCell>(checkpoint, options, alphabet.size()), alphabet);
  else if (options.cell == "rnn")
    f(load_model<reel::RnnCell>(checkpoint, options, alphabet.size()), alphabet);
  else
    f(load_model<reel::LstmCell>(checkpoint, options, alphabet.size()), alphabet);
}
