// examples/char_rnn/text_task.h — a Task that learns to write like a text.
#pragma once

#include <memory>
#include <optional>

#include "../training/ranks.h"
#include "../training/task.h"
#include "options.h"

/// Returns a character model of the text that options.data names, or of the King James Bible if
/// that is empty. Returns null if there is no text.
///
/// ranks: the processes that train together.
/// resumed: the checkpoint of a model to continue. Throws UserError for a text that cannot be read
/// or does not fit the checkpoint, IoError for the checkpoint.
std::unique_ptr<Task> make_text_task(const Options& options, const Ranks& ranks,
                                     const std::optional<reel::SafetensorsFile>& resumed);

/// Returns a task that writes with the checkpoint's model, without a text to learn: only show()
/// works.
std::unique_ptr<Task> make_writer(const Options& options, const reel::SafetensorsFile& checkpoint);
