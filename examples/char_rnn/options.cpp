#include "options.h"

#include <cstdlib>

#include "../training/user_error.h"

Settings settings_in(Options& options) {
  Settings settings;
  settings.add("task", &options.task, Settings::Of::model);
  settings.add_all(options);
  settings.add("length", &options.length, Settings::Of::training);
  if (options.shards > 1) settings.add("shards", &options.shards, Settings::Of::training);
  settings.add("data", &options.data, Settings::Of::run);
  settings.add("characters", &options.characters, Settings::Of::show);
  settings.add("temperature", &options.temperature, Settings::Of::show);
  return settings;
}

reel::Metadata metadata_of(Options options) {
  return settings_in(options).to_metadata(options.checkpoint);
}

void take_settings(Options& options, const reel::SafetensorsFile& checkpoint,
                   const std::set<std::string>& given) {
  const std::uint64_t seed = options.seed;
  const auto shards = checkpoint.metadata().find("shards");
  if (!given.count("shards") && shards != checkpoint.metadata().end())
    options.shards = std::atoi(shards->second.c_str());
  else if (given.count("shards") && shards == checkpoint.metadata().end() && options.shards > 1)
    throw UserError(checkpoint.path() + " holds another model: it was made with --shards 1, not " +
                    std::to_string(options.shards));
  settings_in(options).take(checkpoint, given, !options.sample, "char_rnn");
  // A model that only writes draws its own random numbers.
  if (options.sample) options.seed = seed;
}
