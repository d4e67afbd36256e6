#include "reel/trace/executors/plan/explain/plan_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "reel/core/base/str.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/runtime/parallel.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/costs.h"
#include "reel/trace/executors/plan/base/explain_format.h"

namespace reel {
namespace {

// Limits of printed lines: ops that took longest, then the others by name.
constexpr std::size_t kMaxOpsPrinted = 3, kMaxNamesPrinted = 4;

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
    for (const std::size_t part : {LoopProfile::kBody, LoopProfile::kFinished}) {
      const Profiles more = children_of(planned, part);
      result.insert(result.end(), more.begin(), more.end());
    }
  };
  add(loop);
  for (std::size_t b = 0; b < blocks; ++b) {
    const Profiles planned = children_of(loop, LoopProfile::kFirstBlock + b);
    if (planned.empty()) break;
    add(planned);
  }
  return result;
}

PlanTimes::PlanTimes(const Profile* profile) {
  if (!profile) return;
  profiles_.push_back(profile);
  runs_ = profile->runs;
  call_ = static_cast<double>(profile->nanoseconds);
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
  const std::size_t blocks =
      PlanView::runs_joined(loop) ? PlanView::batches(loop) : PlanView::blocks(loop).size();
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

double PlanTimes::threads_of(const PlanView::Instruction& at, const Profiles& around) {
  const auto all = static_cast<double>(total(around, at.record).nanoseconds);
  double of_blocks = 0, count = 0;
  for (const Profile* const loop : children_of(around, at.record)) {
    double blocks = 0;
    LoopProfile::for_each_block(*loop, [&](const Profile& block) {
      of_blocks += static_cast<double>(block.nanoseconds);
      blocks += block.nanoseconds > 0;  // a plan for other sizes may have had more
    });
    count = std::max(count, blocks);
  }
  if (of_blocks == 0 || all == 0) return 1;
  return std::max({1.0, std::min(count, static_cast<double>(threads())), of_blocks / all});
}

/// Returns the time of a loop besides its ops: within iterations, and between threads.
std::vector<PlanTimes::Part> PlanTimes::parts_of_loop(const PlanView::Instruction& at,
                                                      const Profiles& around, double share) const {
  double ops = 0, condition = 0, of_finished = 0, in_finished = 0, of_blocks = 0;
  const auto ops_of = [](const Profile& plan) {
    double sum = 0;
    for (const Profile::Count& count : plan.records) sum += static_cast<double>(count.nanoseconds);
    return sum;
  };
  const auto add = [&](const Profile& loop) {
    in_finished += static_cast<double>(loop.finished_nanoseconds);
    for (const std::size_t part : {LoopProfile::kBody, LoopProfile::kCond, LoopProfile::kFinished})
      if (const Profile* const plan = loop.find_child(part)) {
        ops += ops_of(*plan);
        if (part == LoopProfile::kCond) condition += ops_of(*plan);
        if (part == LoopProfile::kFinished) of_finished += ops_of(*plan);
      }
  };
  for (const Profile* const loop : children_of(around, at.record)) {
    LoopProfile::for_each_run(*loop, add);
    LoopProfile::for_each_block(
        *loop, [&](const Profile& block) { of_blocks += static_cast<double>(block.nanoseconds); });
  }
  const auto all = static_cast<double>(total(around, at.record).nanoseconds);
  const double at_a_time = threads_of(at, around);
  const double finished = std::max(0.0, in_finished - of_finished) / at_a_time;
  const double between_blocks = of_blocks > 0 ? std::max(0.0, all - of_blocks / at_a_time) : 0;
  const double rest = std::max(0.0, all - ops / at_a_time - finished - between_blocks);
  return {{"its condition", condition / at_a_time * share},
          {"the values that finished entries read and return", finished * share},
          {"between its ops: states, slices and stacks", rest * share},
          {"rows into and out of row blocks, and waiting for threads", between_blocks * share}};
}

std::vector<std::string> PlanTimes::of_whole(const Plan& plan) const {
  double ops = 0;
  if (runs_)
    for (const Profile::Count& count : profiles_[0]->records)
      ops += static_cast<double>(count.nanoseconds);
  return text(plan, profiles_, predicted(plan, profiles_), call_, 1,
              {{"before and after the ops: arguments, memory and results", call_ - ops}});
}

std::vector<std::string> PlanTimes::of_loop(const Plan& around, const PlanView::Instruction& at,
                                            const Profiles& profiles, std::optional<double> times,
                                            double share) const {
  const LoopPlan& loop = PlanView::loop_of(around, at);
  const Profiles own = children_of(profiles, at.record);
  Profiles bodies = profiles_of_body(own, PlanView::blocks(loop).size());
  std::optional<double> all = predicted_loop(around, at, profiles);
  if (all && times) *all *= *times;
  return text(*PlanView::shown(loop).body, bodies, times ? all : std::nullopt,
              share * static_cast<double>(total(profiles, at.record).nanoseconds),
              share / threads_of(at, profiles), parts_of_loop(at, profiles, share));
}

std::vector<std::string> PlanTimes::of_branch(const Plan& branch, const Profiles& profiles,
                                              double share) const {
  double sum = 0;
  std::int64_t runs = 0;
  for (const Profile* profile : profiles) {
    for (const Profile::Count& count : profile->records)
      sum += static_cast<double>(count.nanoseconds);
    runs += profile->runs;
  }
  std::optional<double> all = predicted(branch, profiles);
  if (all && runs_) *all *= static_cast<double>(runs) / static_cast<double>(runs_);
  return text(branch, profiles, all, share * sum, share, {});
}

/// Returns the share of a time in the time of all calls, in whole percents.
double PlanTimes::percent(double nanoseconds) const {
  return std::round(100 * nanoseconds / std::max(call_, 1.0));
}

/// share: of the ops' times in the call's. parts: times that are in no op.
std::vector<std::string> PlanTimes::text(const Plan& plan, const Profiles& profiles,
                                         std::optional<double> predicted, double nanoseconds,
                                         double share, std::vector<Part> parts) const {
  std::string first = predicted ? "predicted " + time_text(*predicted)
                                : "not predicted, because the trip count is unknown";
  if (!runs_) return {first};
  first +=
      str(", measured ", time_text(nanoseconds * 1e-9 / static_cast<double>(runs_)), " a call, ",
          is_first_ ? "the first one, which plans the loops" : str("the mean of ", runs_));
  std::vector<std::string> lines{first};
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // nanoseconds, record
  for (const PlanView::Instruction& at : PlanView::instructions(plan))
    if (const std::int64_t one = total(profiles, at.record).nanoseconds;
        one && at.kind != PlanView::Kind::nothing)
      order.emplace_back(one, at.record);
  std::sort(order.rbegin(), order.rend());
  const std::size_t printed = std::min(kMaxOpsPrinted, order.size());
  for (std::size_t i = 0; i < printed; ++i) {
    const auto& [one, r] = order[i];
    const auto calls = static_cast<double>(total(profiles, r).calls);
    lines.push_back(str(percent(static_cast<double>(one) * share), " % ", name_of(plan, r), ", ",
                        calls / static_cast<double>(runs_), " x ",
                        time_text(static_cast<double>(one) * 1e-9 / calls)));
  }
  struct Others {
    std::int64_t nanoseconds = 0;
    int count = 0;
  };
  std::map<std::string_view, Others> by_name;
  for (std::size_t i = printed; i < order.size(); ++i) {
    Others& of = by_name[plan.graph().records[order[i].second].op->name];
    of.nanoseconds += order[i].first;
    of.count += 1;
  }
  std::vector<std::pair<std::string_view, Others>> names(by_name.begin(), by_name.end());
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  std::vector<Part> others;
  Others rest;
  for (const auto& [name, of] : names) {
    if (others.size() < kMaxNamesPrinted) {
      others.push_back(
          {str(of.count, " more ", name), static_cast<double>(of.nanoseconds) * share});
      continue;
    }
    rest.nanoseconds += of.nanoseconds;
    rest.count += of.count;
  }
  if (rest.count)
    others.push_back({str(rest.count, rest.count == 1 ? " other op" : " other ops"),
                      static_cast<double>(rest.nanoseconds) * share});
  parts.insert(parts.begin(), others.begin(), others.end());
  for (const Part& part : parts)
    if (percent(part.nanoseconds) > 0)
      lines.push_back(str(percent(part.nanoseconds), " % ", part.name));
  return lines;
}

}  // namespace reel
