#include "options.h"

Settings settings_in(Options& options) {
  Settings settings;
  settings.add_all(options);
  settings.add("data", &options.data, Settings::Of::run);
  settings.add_file("picture", options.picture);
  return settings;
}
