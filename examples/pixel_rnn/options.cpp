#include "options.h"

Settings settings_in(Options& options) {
  Settings settings;
  settings.add("pixels", &options.has_single_pixels, Settings::Of::model);
  settings.add_all(options);
  settings.add("data", &options.data, Settings::Of::run);
  settings.add_file("accuracy-plot", options.accuracy_plot);
  settings.add_file("confusion-plot", options.confusion_plot);
  return settings;
}
