// trace/executors/plan/explain/plan_times.h — PlanTimes: predicted and measured times of a plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/trace/executors/plan/base/rates.h"
#include "reel/trace/executors/plan/explain/plan_view.h"

namespace reel {

/// Profiles of the plans that run one graph; several if a loop runs in row blocks.
using Profiles = std::vector<const Profile*>;
/// Returns child `i` of each profile.
Profiles children_of(const Profiles& profiles, std::size_t i);
/// Returns the profiles of a loop's body, including its row blocks. loop: profiles of the loop.
Profiles profiles_of_body(const Profiles& loop, std::size_t blocks = SIZE_MAX);

/// Times of a plan and of the loops in it, as text for explain().
class PlanTimes {
 public:
  /// profile: of the whole plan; null if runs were not counted.
  explicit PlanTimes(const Profile* profile);

  const Profiles& profiles() const { return profiles_; }
  /// Returns "predicted 2 us, measured 3 us a call, the mean of 4", then a line for each of the ops
  /// that took longest.
  std::vector<std::string> of_whole(const Plan& plan) const;
  /// times: how often the loop runs per call of the whole plan, if known. share: as threads_of().
  std::vector<std::string> of_loop(const Plan& around, const PlanView::Instruction& at,
                                   const Profiles& profiles, std::optional<double> times,
                                   double share) const;
  /// profiles: of the branch. Reports the measured time of all its runs in a call.
  std::vector<std::string> of_branch(const Plan& branch, const Profiles& profiles,
                                     double share) const;
  /// Returns how many threads ran a loop's row blocks at a time; 1 for other loops. Times of the
  /// loop's ops, which are sums over threads, are divided by it: their share of the call's time.
  static double threads_of(const PlanView::Instruction& at, const Profiles& around);
  /// Returns how often a loop's body runs sequentially in one run of the loop; nothing if unknown.
  static std::optional<double> runs_of_body(const Plan& plan, const PlanView::Instruction& at,
                                            const Profiles& profiles);
  /// Returns the counted iterations per run of a loop.
  static std::optional<double> counted_steps(const PlanView::Instruction& at,
                                             const Profiles& around);

 private:
  std::optional<double> predicted(const Plan& plan, const Profiles& profiles) const;
  std::optional<double> predicted(const Plan& plan, const PlanView::Instruction& at,
                                  const Profiles& profiles) const;
  std::optional<double> predicted_loop(const Plan& plan, const PlanView::Instruction& at,
                                       const Profiles& profiles) const;
  /// A line of time that is in no op: its share of the call.
  struct Part {
    std::string name;
    double nanoseconds;
  };
  std::vector<std::string> text(const Plan& plan, const Profiles& profiles,
                                std::optional<double> predicted, double nanoseconds, double share,
                                std::vector<Part> parts) const;
  std::vector<Part> parts_of_loop(const PlanView::Instruction& at, const Profiles& around,
                                  double share) const;
  double percent(double nanoseconds) const;

  Profiles profiles_;  ///< of the whole plan: one, or none
  double call_ = 0;    ///< nanoseconds of all counted calls
  std::int64_t runs_ = 0;
  bool is_first_ = false;
};

}  // namespace reel
