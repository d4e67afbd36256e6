#include "training.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <numeric>

#include "progress.h"
#include "text.h"

namespace {

constexpr double kLearningRate = 0.004;
/// In the mode `both`, eager steps come first: so many, or as many as fit into the time.
constexpr int kEagerSteps = 30;
constexpr double kEagerSeconds = 8;
/// What the loss is averaged over where a number is shown.
constexpr std::size_t kAveragedSteps = 100;

volatile std::sig_atomic_t interrupted = 0;

/// Ctrl-C is noted while this lives; the second one acts as if it did not.
class InterruptNote {
 public:
  InterruptNote() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &before_);
  }
  ~InterruptNote() { ::sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Steps and time in one mode. The first traced step counts as tracing.
struct Speed {
  int steps = 0;
  double seconds = 0;
  double per_step() const { return steps ? seconds / steps : 0; }
};

std::string minutes(double seconds) {
  char text[32];
  const auto whole = std::lround(seconds);
  std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

/// Three minutes of training are not to end with a folder that cannot be written to.
void check_folder_of(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw UserError("cannot write " + path + ": " + std::strerror(errno));
}

/// High at first, then down along half a cosine, to a twentieth.
double learning_rate_at(int step, int steps) {
  const double done = static_cast<double>(step) / std::max(steps, 1);
  return kLearningRate * (0.05 + 0.95 * (1 + std::cos(M_PI * done)) / 2);
}

class Training {
 public:
  Training(Task& task, const Options& options)
      : task_(task), options_(options), losses_(options.losses, task.unit()) {}

  bool run() {
    InterruptNote note;
    bool is_traced = options_.mode == Mode::traced;
    for (int step = 0; step < options_.steps && !interrupted; ++step) {
      if (options_.mode == Mode::both && !is_traced &&
          (step == kEagerSteps || eager_.seconds > kEagerSeconds)) {
        is_traced = true;
        line_.print(speed_line("eager", eager_) + "; now traced");
      }
      take_step(step, is_traced);
    }
    report();
    return interrupted;
  }
  void close_losses() { losses_.close(); }

 private:
  void take_step(int step, bool is_traced) {
    const Stopwatch watch;
    const double loss = task_.step(is_traced, learning_rate_at(step, options_.steps));
    const double seconds = watch.seconds();
    if (!std::isfinite(loss))
      throw UserError("the loss is no number any more at step " + std::to_string(step + 1) +
                      "; try another --seed");
    losses_.write(step + 1, is_traced ? "traced" : "eager", loss, seconds);
    recent_.push_back(loss);
    if (recent_.size() > kAveragedSteps) recent_.pop_front();

    Speed& speed = is_traced ? traced_ : eager_;
    if (is_traced && !is_recorded_) {
      is_recorded_ = true;
      line_.print("recorded the training step in its first run, " +
                  std::to_string(seconds).substr(0, 4) + " s");
      return;
    }
    ++speed.steps;
    speed.seconds += seconds;
    show(step, is_traced ? "traced" : "eager", speed);
  }

  double average() const {
    return std::accumulate(recent_.begin(), recent_.end(), 0.0) /
           static_cast<double>(recent_.size());
  }
  double items_per_second(const Speed& speed) const {
    return task_.items_per_step() / speed.per_step();
  }

  void show(int step, const char* mode, const Speed& speed) {
    char text[160];
    std::snprintf(text, sizeof text, "step %d/%d %s: %.3f %s, %s %s/s, %s left", step + 1,
                  options_.steps, mode, average(), task_.unit().c_str(),
                  with_commas(items_per_second(speed)).c_str(), task_.item().c_str(),
                  minutes(speed.per_step() * (options_.steps - step - 1)).c_str());
    line_.show(text);
  }

  std::string speed_line(const char* mode, const Speed& speed) const {
    return std::string(mode) + ": " + with_commas(items_per_second(speed)) + ' ' + task_.item() +
           "/s";
  }

  void report() {
    if (recent_.empty()) return;
    char text[160];
    std::snprintf(text, sizeof text, "%s %.3f %s over the last %zu steps",
                  interrupted ? "interrupted at" : "ended at", average(), task_.unit().c_str(),
                  recent_.size());
    line_.print(text);
    if (eager_.steps) line_.print(speed_line("eager", eager_));
    if (traced_.steps) line_.print(speed_line("traced", traced_));
  }

  Task& task_;
  const Options& options_;
  LossFile losses_;
  ProgressLine line_;
  std::deque<double> recent_;
  Speed eager_, traced_;
  bool is_recorded_ = false;
};

}  // namespace

bool train(Task& task, const Options& options) {
  check_folder_of(options.checkpoint);
  Training training(task, options);
  const bool was_interrupted = training.run();
  task.save(options.checkpoint);
  training.close_losses();
  return was_interrupted;
}
