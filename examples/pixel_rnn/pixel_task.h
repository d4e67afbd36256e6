// pixel_task.h — learning what a picture shows from its pixels, one after another.
#pragma once

#include <memory>
#include <optional>

#include "../training/task.h"
#include "options.h"

/// The pictures of options.data. show() answers all of its test pictures, and draws what was taken
/// for what. resumed: a checkpoint to go on with. Throws UserError for the data, IoError for the
/// checkpoint.
std::unique_ptr<Task> make_pixel_task(const Options& options, const reel::Metadata& settings,
                                      const std::optional<reel::SafetensorsFile>& resumed);
