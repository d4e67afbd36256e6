// examples/char_rnn/stored_model.h — loads the model of a char_rnn checkpoint, for programs that
// write with it.
#pragma once

#include <string>
#include <vector>

#include "model.h"
#include "options.h"
#include "text.h"

/// Returns the alphabet of the model in a checkpoint: symbols have the meaning they had in
/// training. Throws UserError for a model that writes no text.
Alphabet stored_alphabet(const reel::SafetensorsFile& checkpoint);

/// Opens the checkpoint once, so that all data are from one save. Throws UserError if there is
/// none, IoError if it cannot be read.
reel::SafetensorsFile open_checkpoint(const std::string& path);

/// Returns the options of the model in a checkpoint. Throws UserError if it is not of char_rnn.
Options stored_options(const reel::SafetensorsFile& checkpoint);

/// Returns the symbols that a model starts from: the start of a text, then the prompt. Throws
/// UserError for a character that is not in the alphabet.
std::vector<int> encode_prompt(const Alphabet& alphabet, const std::string& prompt);

/// Returns the model in a checkpoint. Throws IoError.
template <class Cell>
CharModel<Cell> load_model(const reel::SafetensorsFile& checkpoint, const Options& options,
                           int symbols) {
  auto model = CharModel<Cell>::random(symbols, options.hidden, options.layers);
  reel::load_safetensors(checkpoint, model, {.prefix = "model"});
  return model;
}

/// Calls f(model, alphabet) with the cell type of the model. Throws as open_checkpoint,
/// stored_options and stored_alphabet, and IoError for a damaged file.
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
