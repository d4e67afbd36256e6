// examples/training/program.h — flags and error handling of the training programs' main functions.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <set>
#include <string>

#include "options.h"
#include "task.h"

/// Adds the flags of TrainingOptions, and `--threads`. batch: the program's word for an entry of a
/// batch. kept: the program's own flags that --resume takes with no other values.
void add_training_flags(CLI::App& app, TrainingOptions& options, const std::string& batch,
                        const std::string& kept);

/// Adds `--threads`. promise: a text about results that do not depend on it.
void add_threads_flag(CLI::App& app, const std::string& promise = "");

/// Adds `--seed`. of: the program's word for its use.
void add_seed_flag(CLI::App& app, std::uint64_t& seed, const std::string& of);

/// Returns the flags that the user gave.
std::set<std::string> flags_given(const CLI::App& app);

/// Parses the flags and calls run(). Prints any failure as one line with the program's name.
/// Returns the exit code: 0; 1 after an error; 2 after wrong flags; or the result of run().
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& run);

/// Trains, then prints the result. Returns a code for run_program: 0, or 128 + the signal that
/// ended training.
int train_and_show(Task& task, const TrainingOptions& options);
/// Prints the result of training. Throws UserError if standard output cannot be written.
void show(const Task& task);
