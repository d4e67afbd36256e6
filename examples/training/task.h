// examples/training/task.h — Task: something that can be trained.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "options.h"

/// The measurements of a training step.
struct Measured {
  double loss;
  std::optional<double> accuracy{};  ///< the share of right answers, for tasks that have one
};

class Task {
 public:
  virtual ~Task() = default;
  /// Runs one training step.
  virtual Measured step(bool is_traced) = 0;
  /// Returns the number of steps over all runs.
  virtual std::int64_t steps_done() const = 0;
  /// Saves or loads everything that training depends on. more: further metadata of the file. Throw
  /// IoError.
  virtual void save(const std::string& path, const reel::Metadata& more) = 0;
  virtual void load(const reel::SafetensorsFile& file) = 0;
  /// Writes the distribution of each parameter, and once the graph of a traced step.
  virtual void write_events(reel::EventWriter& events) = 0;
  /// Returns the result of training as text.
  virtual std::string show() const = 0;

  virtual std::string unit() const = 0;  ///< of the loss: "bits per character"
  virtual std::string item() const = 0;  ///< the items of a step: "characters"
  virtual double items_per_step() const = 0;
  virtual bool has_accuracy() const { return false; }
};

/// Returns a TaskOf<Cell> with the cell that the options name.
template <template <class> class TaskOf, class... Args>
std::unique_ptr<Task> make_task(const TrainingOptions& options, Args&&... args) {
  if (options.cell == "gru")
    return std::make_unique<TaskOf<reel::GruCell>>(std::forward<Args>(args)...);
  if (options.cell == "rnn")
    return std::make_unique<TaskOf<reel::RnnCell>>(std::forward<Args>(args)...);
  return std::make_unique<TaskOf<reel::LstmCell>>(std::forward<Args>(args)...);
}
