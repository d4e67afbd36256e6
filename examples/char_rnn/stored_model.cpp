#include "stored_model.h"

#include <filesystem>

Alphabet stored_alphabet(const std::string& checkpoint) {
  const reel::Metadata metadata = reel::read_safetensors_metadata(checkpoint);
  const auto found = metadata.find("alphabet");
  if (found == metadata.end())
    throw UserError(checkpoint + " holds a model that writes no text: it has no alphabet");
  return Alphabet::from_hex(found->second);
}

Options stored_options(const std::string& checkpoint) {
  if (!std::filesystem::exists(checkpoint))
    throw UserError("there is no " + checkpoint +
                    "; char_rnn trains a model, --checkpoint says where it is");
  Options options;
  options.checkpoint = checkpoint;
  options.sample = true;
  take_settings(options, {});
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
