// examples/pixel_rnn/pixel_task.h — a Task that classifies pictures by reading their pixels one
// after another.
#pragma once

#include <memory>
#include <optional>

#include "../training/task.h"
#include "options.h"

/// Returns a task on the pictures of options.data. show() classifies all test pictures, and draws
/// the confusions. resumed: a checkpoint to continue. Throws UserError for the data, IoError for
/// the checkpoint.
std::unique_ptr<Task> make_pixel_task(const Options& options, const reel::Metadata& settings,
                                      const std::optional<reel::SafetensorsFile>& resumed);
