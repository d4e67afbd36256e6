// program.h — what the main functions of training programs share: flags, and how they end.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <set>
#include <string>

#include "options.h"
#include "task.h"

/// The flags of TrainingOptions, and `--threads`. batch: what a program calls it; kept: those of
/// its own that --resume takes with no other values.
void add_training_flags(CLI::App& app, TrainingOptions& options, const std::string& batch,
                        const std::string& kept);

/// `--threads`. promise: what does not depend on it.
void add_threads_flag(CLI::App& app, const std::string& promise = "");

/// `--seed`. of: what it is the seed of.
void add_seed_flag(CLI::App& app, std::uint64_t& seed, const std::string& of);

/// The flags that the user gave.
std::set<std::string> flags_given(const CLI::App& app);

/// Parses and runs. Every failure is one line, with the program's name.
/// -> what main returns: 0; 1 after an error; 2 after wrong flags; or what run gives.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& run);

/// Trains, and then shows what has been learnt. -> for run_program: 128 + the signal that ended it.
int train_and_show(Task& task, const TrainingOptions& options);
/// The second half. Throws UserError when nobody can read it.
void show(const Task& task);
