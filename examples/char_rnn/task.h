// task.h — Task, something that can be trained.
#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "options.h"

class Task {
 public:
  virtual ~Task() = default;
  /// One step of training -> its loss in unit().
  virtual double step(bool is_traced) = 0;
  /// Over all runs.
  virtual std::int64_t steps_done() const = 0;
  /// All that training depends on, to and from a file; more: what else the file shall know. Throw
  /// IoError.
  virtual void save(const std::string& path, const reel::Metadata& more) = 0;
  virtual void load(const std::string& path) = 0;
  /// What has been learnt, as text.
  virtual std::string show() const = 0;

  virtual std::string unit() const = 0;  ///< "bits per character"
  virtual std::string item() const = 0;  ///< "characters", of which a step takes
  virtual double items_per_step() const = 0;
};

/// TaskOf<Cell>, with the cell that the options name.
template <template <class> class TaskOf, class... Args>
std::unique_ptr<Task> make_task(const Options& options, Args&&... args) {
  if (options.cell == "gru")
    return std::make_unique<TaskOf<reel::GruCell>>(options, std::forward<Args>(args)...);
  if (options.cell == "rnn")
    return std::make_unique<TaskOf<reel::RnnCell>>(options, std::forward<Args>(args)...);
  return std::make_unique<TaskOf<reel::LstmCell>>(options, std::forward<Args>(args)...);
}
