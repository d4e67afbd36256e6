#include "training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <numeric>
#include <optional>
#include <vector>

#include "curve.h"
#include "loss_file.h"
#include "user_error.h"
#include "write_file.h"

namespace {

/// In the mode `both`, the first steps are eager.
constexpr std::int64_t kEagerSteps = 30;
/// Number of steps over which a printed loss is averaged.
constexpr std::size_t kAveragedSteps = 100;

volatile std::sig_atomic_t noted_signal = 0;

/// Notes Ctrl-C and SIGTERM while it lives; a second signal acts as usual.
class SignalNote {
 public:
  SignalNote() {
    struct sigaction action {};
    action.sa_handler = [](int signal) { noted_signal = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &before_int_);
    ::sigaction(SIGTERM, &action, &before_term_);
  }
  ~SignalNote() {
    ::sigaction(SIGINT, &before_int_, nullptr);
    ::sigaction(SIGTERM, &before_term_, nullptr);
  }

 private:
  struct sigaction before_int_ {
  }, before_term_{};
};

/// Steps and time in one mode. The first traced step counts as tracing.
struct Speed {
  int steps = 0;
  double seconds = 0;
};

double accuracy_of(const LossRow& row) { return *row.accuracy; }

class Training {
 public:
  Training(Task& task, const TrainingOptions& options)
      : task_(task),
        options_(options),
        losses_(options.losses, task.unit() + (task.has_accuracy() ? ",accuracy" : ""),
                task.steps_done(), options.last_loss),
        progress_(
            options.steps, "training",
            {.unit = task.item(), .units_per_step = task.items_per_step(), .out = &std::cout}) {
    if (!options.events.empty())
      events_.emplace(options.events,
                      reel::EventWriterOptions{.purge_step = task.steps_done() + 1});
  }

  int run() {
    SignalNote note;
    const std::int64_t begin = task_.steps_done();
    std::int64_t end = std::max<std::int64_t>(options_.steps, begin);
    if (options_.stop_after) end = std::min(end, begin + options_.stop_after);
    std::int64_t step = begin;
    for (; step < end && !options_.on_any_rank(noted_signal != 0); ++step) {
      const bool is_traced =
          options_.mode == "traced" || (options_.mode == "both" && step >= kEagerSteps);
      if (step == kEagerSteps && options_.mode == "both" && eager_.steps)
        progress_.print(speed_line("eager", eager_) + "; now traced");
      take_step(step, is_traced);
      if ((step + 1) % options_.checkpoint_every == 0 && step + 1 < end) save();
    }
    save();
    report(step, begin);
    return noted_signal;
  }
  void finish() {
    losses_.close();
    save_plot(options_.plot, points_of(&LossRow::loss), task_.unit());
    if (task_.has_accuracy()) save_plot(options_.accuracy_plot, points_of(accuracy_of), "accuracy");
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Rows first, so that the file has all steps of the checkpoint. The checkpoint stores the last
  /// loss, to recognise its file of losses.
  void save() {
    if (!options_.is_first_rank) return;
    losses_.flush();
    if (events_) task_.write_events(*events_);
    task_.save(options_.checkpoint, {{"loss", losses_.last()}});
  }

  void take_step(std::int64_t step, bool is_traced) {
    const Clock::time_point start = Clock::now();
    const auto [loss, accuracy] = task_.step(is_traced);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!std::isfinite(loss))
      throw UserError("the loss is not finite at step " + std::to_string(step + 1) +
                      "; try another --seed");
    losses_.write({step + 1, is_traced, loss, accuracy});
    if (events_) events_->scalar(task_.unit(), step + 1, loss);
    if (events_ && accuracy) events_->scalar("accuracy", step + 1, *accuracy);
    if (is_traced && !is_recorded_) {
      is_recorded_ = true;
      char text[80];
      std::snprintf(text, sizeof text, "recorded the training step in its first run, %.2f s",
                    seconds);
      progress_.print(text);
    } else {
      Speed& speed = is_traced ? traced_ : eager_;
      ++speed.steps;
      speed.seconds += seconds;
    }
    if (task_.has_accuracy())
      progress_.update(
          step + 1, {{task_.unit(), mean_of(&LossRow::loss)}, {"accuracy", mean_of(accuracy_of)}});
    else
      progress_.update(step + 1, {{task_.unit(), mean_of(&LossRow::loss)}});
  }

  std::size_t averaged() const { return std::min(kAveragedSteps, losses_.rows().size()); }
  /// Returns the mean over the last steps. value: of a row.
  template <class Value>
  double mean_of(const Value& value) const {
    const auto& rows = losses_.rows();
    const double sum = std::accumulate(
        rows.end() - static_cast<std::ptrdiff_t>(averaged()), rows.end(), 0.0,
        [&](double total, const LossRow& row) { return total + std::invoke(value, row); });
    return sum / static_cast<double>(averaged());
  }
  template <class Value>
  std::vector<CurvePoint> points_of(const Value& value) const {
    std::vector<CurvePoint> points;
    for (const LossRow& row : losses_.rows())
      points.push_back({row.step, row.is_traced, std::invoke(value, row)});
    return points;
  }

  void save_plot(const std::string& path, const std::vector<CurvePoint>& points,
                 const std::string& unit) const {
    if (path.empty()) return;
    if (points.empty()) throw UserError("no losses to draw in " + options_.losses);
    save_curve(path, points, unit);
  }

  std::string speed_line(const char* mode, const Speed& speed) const {
    char text[120];
    std::snprintf(text, sizeof text, "%s: %.0f %s/s", mode,
                  task_.items_per_step() * speed.steps / speed.seconds, task_.item().c_str());
    return text;
  }

  void report(std::int64_t step, std::int64_t begin) {
    if (step == begin) {
      progress_.print("no step to take: " + std::to_string(begin) + " are done of --steps " +
                      std::to_string(options_.steps));
      return;
    }
    if (losses_.rows().size() > 1)
      progress_.print(draw_curve(points_of(&LossRow::loss), task_.unit()));
    char text[160];
    std::snprintf(text, sizeof text, "%s %.3f %s over the last %zu steps",
                  step < options_.steps ? "stopped at" : "ended at", mean_of(&LossRow::loss),
                  task_.unit().c_str(), averaged());
    progress_.print(text);
    if (eager_.steps) progress_.print(speed_line("eager", eager_));
    if (traced_.steps) progress_.print(speed_line("traced", traced_));
    if (step < options_.steps)
      progress_.print("step " + std::to_string(step) + " of " + std::to_string(options_.steps) +
                      " is in " + options_.checkpoint + "; --resume continues");
  }

  Task& task_;
  const TrainingOptions& options_;
  LossFile losses_;
  reel::Progress progress_;
  std::optional<reel::EventWriter> events_;
  Speed eager_, traced_;
  bool is_recorded_ = false;
};

}  // namespace

int train(Task& task, const TrainingOptions& options) {
  check_folder_of(options.checkpoint);
  for (const std::string& plot : {options.plot, options.accuracy_plot})
    if (!plot.empty()) check_folder_of(plot);
  Training training(task, options);
  const int signal = training.run();
  training.finish();
  return signal;
}
