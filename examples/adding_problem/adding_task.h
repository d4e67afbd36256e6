// examples/adding_problem/adding_task.h — the adding problem, which needs no data: sequences of
// numbers with two marked ones, and the sum of these two.
#pragma once

#include <memory>
#include <optional>

#include "../training/task.h"

struct AddingProblem {
  int length;              ///< of sequences; of the longest, if they are ragged
  bool is_ragged = false;  ///< lengths from a tenth of `length` on, all equally likely
};

/// Returns the task of Hochreiter & Schmidhuber (1997), experiment 4. Always answering 1 gives a
/// mean squared error of 1/6. settings: for the checkpoint. resumed: a checkpoint to continue.
/// Throws IoError.
std::unique_ptr<Task> make_adding_task(const TrainingOptions& options, const AddingProblem& problem,
                                       const reel::Metadata& settings,
                                       const std::optional<reel::SafetensorsFile>& resumed);
