#include "stored_model.h"

#include <filesystem>

Alphabet stored_alphabet(const reel::SafetensorsFile& checkpoint) {
  const reel::Metadata& metadata = checkpoint.metadata();
  const auto found = metadata.find("alphabet");
  if (found == metadata.end())
    throw UserError(checkpoint.path() + " holds a model that writes no text: it has no alphabet");
  return Alphabet::from_hex(found->second);
}

reel::SafetensorsFile open_checkpoint(const std::string& path) {
  if (!std::filesystem::exists(path))
    throw UserError("there is no " + path +
                    "; train a model with char_rnn, or name its file with --checkpoint");
  return reel::SafetensorsFile(path);
}

Options stored_options(const reel::SafetensorsFile& checkpoint) {
  Options options;
  options.checkpoint = checkpoint.path();
  options.sample = true;
  take_settings(options, checkpoint, {});
  return options;
}

std::vector<int> encode_prompt(const Alphabet& alphabet, const std::string& prompt) {
  std::vector<int> symbols{alphabet.start()};
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    if (!alphabet.contains(prompt[i]))
      throw UserError("the model has never seen character " + std::to_string(i + 1) +
                      " of the prompt \"" + prompt + '"');
    symbols.push_back(alphabet.encode(prompt.substr(i, 1))[0]);
  }
  return symbols;
}
