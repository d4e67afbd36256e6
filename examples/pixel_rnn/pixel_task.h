// pixel_task.h — learning what a picture shows from its pixels, one after another.
#pragma once

#include <memory>

#include "../training/task.h"
#include "options.h"

/// The pictures of options.data. show() answers all of its test pictures, and draws what was taken
/// for what. With options.resume it goes on with the checkpoint. Throws UserError for the data,
/// IoError for the checkpoint.
std::unique_ptr<Task> make_pixel_task(const Options& options, const reel::Metadata& settings);
