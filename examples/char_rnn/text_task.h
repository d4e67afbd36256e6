// text_task.h — learning to write as a text is written.
#pragma once

#include <memory>

#include "../training/task.h"
#include "options.h"

/// A character model of the text that options.data names, or of the King James Bible where that is
/// empty; with options.resume the one that the checkpoint holds. Nothing where there is no text.
/// Throws UserError for a text that cannot be read or does not fit to the checkpoint, IoError for
/// the checkpoint.
std::unique_ptr<Task> make_text_task(const Options& options);

/// What the model in the checkpoint writes, without a text to learn from: show() alone works.
std::unique_ptr<Task> make_writer(const Options& options);
