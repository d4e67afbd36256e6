// adding_task.h — the adding problem, which needs no data: numbers of which two are marked, and
// their sum.
#pragma once

#include <memory>
#include <optional>

#include "../training/task.h"

struct AddingProblem {
  int length;              ///< of sequences; of the longest, if they are ragged
  bool is_ragged = false;  ///< lengths from a tenth of that on, all equally likely
};

/// Source: Hochreiter & Schmidhuber (1997), experiment 4. Who always answers 1 has a mean squared
/// error of 1/6. settings: for the checkpoint. resumed: a checkpoint to go on with. Throws IoError.
std::unique_ptr<Task> make_adding_task(const TrainingOptions& options, const AddingProblem& problem,
                                       const reel::Metadata& settings,
                                       const std::optional<reel::SafetensorsFile>& resumed);
