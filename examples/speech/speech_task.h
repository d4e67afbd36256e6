// examples/speech/speech_task.h — a Task that recognises spoken digits.
#pragma once

#include <memory>
#include <optional>

#include "../training/task.h"
#include "options.h"

/// Returns a task on the recordings in options.data: train.csv, and test.csv of other voices.
/// show() recognises all of the test, and draws the alignment of its first recording with the most
/// digits. resumed: a checkpoint to continue. Throws UserError or IoError for the data, IoError for
/// the checkpoint.
std::unique_ptr<Task> make_speech_task(const Options& options, const reel::Metadata& settings,
                                       const std::optional<reel::SafetensorsFile>& resumed);
