// settings.h — Settings, those options that a checkpoint keeps.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "options.h"

/// Names and places of the values. A setting that belongs to the model is the same in all runs of
/// it; one of its training when that goes on; the others, of a run or of what show() does, may
/// change.
class Settings {
 public:
  enum class Of { model, training, run, show };
  using Value = std::variant<std::string*, int*, std::uint64_t*, double*, bool*>;

  void add(const std::string& flag, Value value, Of of) {
    all_.push_back({flag, value, of, false});
  }
  /// One that names a file which the program writes, beside the checkpoint or elsewhere: of a run.
  void add_file(const std::string& flag, std::string& path) {
    all_.push_back({flag, &path, Of::run, true});
  }
  /// Those of TrainingOptions, the checkpoint's own path aside.
  void add_all(TrainingOptions& options);

  /// What a checkpoint keeps, as strings; files in its folder, or below it, as seen from there.
  reel::Metadata to_metadata(const std::string& checkpoint) const;

  /// Replaces all settings that were not given by those of a checkpoint. given: the names of flags.
  /// goes_on: whether the training does; without, what belongs to it is replaced even if given,
  /// and what belongs to show() is left as it is.
  /// program: whose checkpoint it should be. Throws UserError, which names all of those given that
  /// would make another model, or another training of it, than the checkpoint holds.
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

/// The checkpoint that the options resume, or none. It is opened once: whatever a run takes from it
/// is of one save, also while another program saves there. Throws IoError.
std::optional<reel::SafetensorsFile> open_resumed(TrainingOptions& options);
