// text_task.h — learning to write as a text is written.
#pragma once

#include <memory>
#include <optional>

#include "../training/task.h"
#include "options.h"

/// A character model of the text that options.data names, or of the King James Bible where that is
/// empty; resumed: a checkpoint whose model goes on. Nothing where there is no text.
/// Throws UserError for a text that cannot be read or does not fit to the checkpoint, IoError for
/// the checkpoint.
std::unique_ptr<Task> make_text_task(const Options& options,
                                     const std::optional<reel::SafetensorsFile>& resumed);

/// What the model in the checkpoint writes, without a text to learn from: show() alone works.
std::unique_ptr<Task> make_writer(const Options& options, const reel::SafetensorsFile& checkpoint);
