// examples/training/settings.h — Settings: the options that a checkpoint keeps.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "options.h"

/// Names and addresses of option values. A setting of the model is the same in all runs of a
/// checkpoint. A setting of the training is the same in all runs that continue it. Settings of a
/// run or of show() may change.
class Settings {
 public:
  enum class Of { model, training, run, show };
  using Value = std::variant<std::string*, int*, std::uint64_t*, double*, bool*>;

  void add(const std::string& flag, Value value, Of of) {
    all_.push_back({flag, value, of, false});
  }
  /// Adds a setting of a run that names a file which the program writes.
  void add_file(const std::string& flag, std::string& path) {
    all_.push_back({flag, &path, Of::run, true});
  }
  /// Adds the settings of TrainingOptions except the checkpoint's own path.
  void add_all(TrainingOptions& options);

  /// Returns the settings as strings. Files in or below the checkpoint's folder are relative to it.
  reel::Metadata to_metadata(const std::string& checkpoint) const;

  /// Takes all settings that were not given from a checkpoint.
  ///
  /// given: the names of flags.
  /// goes_on: training continues. Otherwise settings of the training are replaced even if given,
  /// and settings of show() stay.
  /// program: the program that must have written the checkpoint.
  /// Throws UserError, which names all given settings that would change the model, or its training,
  /// in the checkpoint.
  void take(const reel::SafetensorsFile& checkpoint, const std::set<std::string>& given,
            bool goes_on, const std::string& program) const;

 private:
  struct Setting {
    std::string flag;
    Value value;
    Of of;
    bool is_file;
  };
  std::vector<Setting> all_;
};

/// Opens the checkpoint that the options resume; nothing if none. It is opened once, so that all
/// data are from one save, even if another program saves there meanwhile. Throws IoError.
std::optional<reel::SafetensorsFile> open_resumed(TrainingOptions& options);
