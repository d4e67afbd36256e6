// trace/executors/plan/plan_times.h — PlanTimes, what a plan is predicted to take, and what it
// took.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reel/trace/executors/plan/plan_view.h"
#include "reel/trace/executors/plan/rates.h"

namespace reel {

/// Those of the plans that run one graph: several where a loop is cut into blocks.
using Profiles = std::vector<const Profile*>;
/// Child `i` of each.
Profiles children_of(const Profiles& profiles, std::size_t i);
/// The profiles of a loop's body, those of its blocks too. loop: those of the loop.
Profiles profiles_of_body(const Profiles& loop, std::size_t blocks = SIZE_MAX);

/// Times of a plan and of the loops in it.
class PlanTimes {
 public:
  /// profile: of the whole plan, or null.
  explicit PlanTimes(const Profile* profile);

  const Profiles& profiles() const { return profiles_; }
  /// "predicted 2 us, measured 3 us a call, the mean of 4", then a line for each of the ops that
  /// took most.
  std::vector<std::string> of_whole(const Plan& plan) const;
  /// times: how often the loop runs in a call of the whole, if that is known.
  std::vector<std::string> of_loop(const Plan& around, const PlanView::Instruction& at,
                                   const Profiles& profiles, std::optional<double> times) const;
  /// profiles: those of the branch. Measured is what all its runs in a call take.
  std::vector<std::string> of_branch(const Plan& branch, const Profiles& profiles) const;
  /// How often a loop's body runs in one run of it, one after the other; nothing where nobody
  /// knows.
  static std::optional<double> runs_of_body(const Plan& plan, const PlanView::Instruction& at,
                                            const Profiles& profiles);
  /// Steps of a run of a loop, as they were counted.
  static std::optional<double> counted_steps(const PlanView::Instruction& at,
                                             const Profiles& around);

 private:
  std::optional<double> predicted(const Plan& plan, const Profiles& profiles) const;
  std::optional<double> predicted(const Plan& plan, const PlanView::Instruction& at,
                                  const Profiles& profiles) const;
  std::optional<double> predicted_loop(const Plan& plan, const PlanView::Instruction& at,
                                       const Profiles& profiles) const;
  std::vector<std::string> text(const Plan& plan, const Profiles& profiles,
                                std::optional<double> predicted, std::int64_t nanoseconds) const;

  Profiles profiles_;  ///< of the whole: one, or none
  std::int64_t runs_ = 0;
  bool is_first_ = false;
};

}  // namespace reel
