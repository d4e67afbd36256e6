// examples/training/training.h — trains a model step by step, eagerly and traced, until it is done
// or interrupted.
#pragma once

#include "options.h"
#include "task.h"

/// Runs the remaining steps of options.steps. Prints progress, and writes losses, checkpoints and
/// finally the curve.
///
/// Ctrl-C or SIGTERM ends it early, with a checkpoint; a second one ends the program. Returns the
/// number of the signal, or 0. Throws UserError if a file cannot be written or a loss is not
/// finite, IoError for the checkpoint.
int train(Task& task, const TrainingOptions& options);
