#include "reel/trace/executors/plan/explain/plan_times.h"

#include <algorithm>
#include <cmath>

#include "reel/core/base/str.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/runtime/parallel.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/costs.h"
#include "reel/trace/executors/plan/base/explain_format.h"

namespace reel {
namespace {

constexpr std::size_t kMaxOpsPrinted = 3;  ///< number of ops that are printed with times

Profile::Count total(const Profiles& profiles, std::size_t record) {
  Profile::Count result;
  for (const Profile* profile : profiles) {
    if (record >= profile->records.size()) continue;
    result.calls += profile->records[record].calls;
    result.nanoseconds += profile->records[record].nanoseconds;
  }
  return result;
}

/// For example "dot(f32[8,4], f32[4,4]) -> f32[8,4]".
std::string name_of(const Plan& plan, std::size_t r) {
  const OpRecord& record = plan.graph().records[r];
  if (record.op == &loop_op) return get<LoopAttrs>(record.attrs.get()).name;
  if (record.op == &cond_op) return "cond";
  const std::string in =
      record.op == &fused_op
          ? str(get<FusedAttrs>(record.attrs.get()).body.graph->records.size(), " ops")
          : types_text(PlanView::types(plan, plan.graph().inputs_of(record)));
  return str(record.op->name, '(', in, ") -> ",
             types_text(PlanView::types(plan, plan.graph().outputs_of(record))));
}

}  // namespace

Profiles children_of(const Profiles& profiles, std::size_t i) {
  Profiles result;
  for (const Profile* profile : profiles)
    if (const Profile* child = profile->find_child(i)) result.push_back(child);
  return result;
}

Profiles profiles_of_body(const Profiles& loop, std::size_t blocks) {
  Profiles result;
  const auto add = [&](const Profiles& planned) {
    for (const std::size_t part : {PlannedLoop::kBody, PlannedLoop::kEnded}) {
      const Profiles more = children_of(planned, part);
      result.insert(result.end(), more.begin(), more.end());
    }
  };
  add(loop);
  for (std::size_t b = 0; b < blocks; ++b) {
    const Profiles planned = children_of(loop, PlannedLoop::kFirstBlock + b);
    if (planned.empty()) break;
    add(planned);
  }
  return result;
}

PlanTimes::PlanTimes(const Profile* profile) {
  if (!profile) return;
  profiles_.push_back(profile);
  runs_ = profile->runs;
  is_first_ = profile->is_first;
}

std::optional<double> PlanTimes::counted_steps(const PlanView::Instruction& at,
                                               const Profiles& around) {
  std::int64_t steps = 0;
  const std::int64_t calls = total(around, at.record).calls;
  for (const Profile* profile : profiles_of_body(children_of(around, at.record), 1))
    steps += profile->runs;  // equally many in every block
  if (!calls || !steps) return std::nullopt;
  return static_cast<double>(steps) / static_cast<double>(calls);
}

/// Returns the predicted time of a run; nothing if a trip count is unknown.
std::optional<double> PlanTimes::predicted(const Plan& plan, const Profiles& profiles) const {
  double sum = 0;
  for (const PlanView::Instruction& at : PlanView::instructions(plan)) {
    const std::optional<double> one = predicted(plan, at, profiles);
    if (!one) return std::nullopt;
    sum += *one;
  }
  return sum;
}

std::optional<double> PlanTimes::predicted(const Plan& plan, const PlanView::Instruction& at,
                                           const Profiles& profiles) const {
  const OpRecord& record = plan.graph().records[at.record];
  switch (at.kind) {
    case PlanView::Kind::nothing:
      return 0;
    case PlanView::Kind::untyped:
      return machine_rates().call;
    case PlanView::Kind::loop:
      return predicted_loop(plan, at, profiles);
    case PlanView::Kind::cond: {  // the longer branch
      double result = 0;
      for (std::size_t b = 0; b < 2; ++b) {
        const SubPlan& branch = PlanView::branch(PlanView::cond_of(plan, at), b);
        if (!branch) continue;
        const auto one = predicted(*branch, children_of(children_of(profiles, at.record), b));
        if (!one) return std::nullopt;
        result = std::max(result, *one);
      }
      return result;
    }
    default:
      return predicted_seconds(
          *at.op, at.attrs, PlanView::types(plan, plan.graph().inputs_of(record)),
          PlanView::types(plan, plan.graph().outputs_of(record)), machine_rates());
  }
}

std::optional<double> PlanTimes::runs_of_body(const Plan& plan, const PlanView::Instruction& at,
                                              const Profiles& profiles) {
  const LoopPlan& loop = PlanView::loop_of(plan, at);
  const LoopAttrs& attrs = PlanView::attrs_of(plan, at);
  const auto known = attrs.chunking.over_chunks ? PlanView::whole(loop).chunks.count()
                                                : steps_of(attrs, PlanView::input_types(loop));
  const std::optional<double> steps =
      known ? std::optional(static_cast<double>(*known)) : counted_steps(at, profiles);
  const std::size_t blocks = PlanView::runs_joined(loop) ? 0 : PlanView::blocks(loop).size();
  if (!steps) return std::nullopt;
  return *steps * (blocks ? std::ceil(static_cast<double>(blocks) / threads()) : 1);
}

std::optional<double> PlanTimes::predicted_loop(const Plan& plan, const PlanView::Instruction& at,
                                                const Profiles& profiles) const {
  const LoopPlan& loop = PlanView::loop_of(plan, at);
  if (!PlanView::is_planned(loop)) return std::nullopt;
  const auto runs = runs_of_body(plan, at, profiles);
  const auto one =
      predicted(*PlanView::shown(loop).body,
                profiles_of_body(children_of(profiles, at.record), PlanView::blocks(loop).size()));
  if (!runs || !one) return std::nullopt;
  return *runs * *one;
}

std::vector<std::string> PlanTimes::of_whole(const Plan& plan) const {
  std::int64_t sum = 0;
  if (runs_)
    for (const Profile::Count& count : profiles_[0]->records) sum += count.nanoseconds;
  return text(plan, profiles_, predicted(plan, profiles_), sum);
}

std::vector<std::string> PlanTimes::of_loop(const Plan& around, const PlanView::Instruction& at,
                                            const Profiles& profiles,
                                            std::optional<double> times) const {
  const LoopPlan& loop = PlanView::loop_of(around, at);
  const Profiles bodies =
      profiles_of_body(children_of(profiles, at.record), PlanView::blocks(loop).size());
  std::optional<double> all = predicted_loop(around, at, profiles);
  if (all && times) *all *= *times;
  return text(*PlanView::shown(loop).body, bodies, times ? all : std::nullopt,
              total(profiles, at.record).nanoseconds);
}

std::vector<std::string> PlanTimes::of_branch(const Plan& branch, const Profiles& profiles) const {
  std::int64_t sum = 0, runs = 0;
  for (const Profile* profile : profiles) {
    for (const Profile::Count& count : profile->records) sum += count.nanoseconds;
    runs += profile->runs;
  }
  std::optional<double> all = predicted(branch, profiles);
  if (all && runs_) *all *= static_cast<double>(runs) / static_cast<double>(runs_);
  return text(branch, profiles, all, sum);
}

std::vector<std::string> PlanTimes::text(const Plan& plan, const Profiles& profiles,
                                         std::optional<double> predicted,
                                         std::int64_t nanoseconds) const {
  std::string first = predicted ? "predicted " + time_text(*predicted)
                                : "not predicted, because the trip count is unknown";
  if (!runs_) return {first};
  const auto seconds = static_cast<double>(nanoseconds) * 1e-9;
  first += str(", measured ", time_text(seconds / static_cast<double>(runs_)), " a call, ",
               is_first_ ? "the first one, which plans the loops" : str("the mean of ", runs_));
  std::vector<std::string> lines{first};
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // nanoseconds, record
  std::int64_t sum = 0;
  for (const PlanView::Instruction& at : PlanView::instructions(plan)) {
    if (at.kind == PlanView::Kind::nothing) continue;
    const std::size_t r = at.record;
    const std::int64_t one = total(profiles, r).nanoseconds;
    sum += one;
    if (one) order.emplace_back(one, r);
  }
  std::sort(order.rbegin(), order.rend());
  if (order.size() > kMaxOpsPrinted) order.resize(kMaxOpsPrinted);
  for (const auto& [one, r] : order) {
    const auto calls = static_cast<double>(total(profiles, r).calls);
    lines.push_back(str(100 * one / sum, " % ", name_of(plan, r), ", ",
                        calls / static_cast<double>(runs_), " x ",
                        time_text(static_cast<double>(one) * 1e-9 / calls)));
  }
  return lines;
}

}  // namespace reel
