// training.h — training a model step by step, eagerly and traced, until it is done or interrupted.
#pragma once

#include "options.h"
#include "task.h"

/// Takes the steps that are left of options.steps, shows how it goes, writes losses, checkpoints,
/// and at the end the curve.
///
/// Ctrl-C, or SIGTERM, ends it early, with a checkpoint; a second one ends the program. -> the
/// number of that signal, or 0. Throws UserError for a file that cannot be written and a loss that
/// is no number, IoError for the checkpoint.
int train(Task& task, const TrainingOptions& options);
