#include "reel/trace/executors/plan/explain/donation_report.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "reel/core/base/quantities.h"
#include "reel/core/base/str.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/explain_format.h"
#include "reel/trace/executors/plan/explain/plan_view.h"

namespace reel {
namespace {

std::string name_of(const OpRecord& record) {
  return record.op == &loop_op ? get<LoopAttrs>(record.attrs.get()).name
                               : std::string(record.op->name);
}

/// Returns true if the argument, or a view of it, is a result, and so stays alive after the run.
bool is_pipelined(const Plan& plan, const PlanView::LastUses& uses, std::size_t argument) {
  return uses.of_input[argument] >= std::ssize(PlanView::instructions(plan));
}

/// Returns why nothing was written over an argument that had no other reference.
std::string why_not(const Plan& plan, const PlanView::LastUses& uses, std::size_t argument) {
  const int last = uses.of_input[argument];
  const auto& all = PlanView::instructions(plan);
  const auto op = [&](std::size_t i) { return name_of(plan.graph().records[all[i].record]); };
  if (last < 0) return "never read";
  const auto at = static_cast<std::size_t>(last);
  if (is_pipelined(plan, uses, argument)) return "returned as a result or viewed by one";
  if (at >= uses.first_safe) return str("its last use, ", op(at), ", cannot write over it");
  const std::size_t failing = uses.first_safe - 1;
  return at == failing ? str("its last use, ", op(at), ", may fail")
                       : str(op(failing), ", after its last use, may fail");
}

std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNames = 6;
  std::string result;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNames); ++i)
    result += str(i ? ", " : "", names[i]);
  return names.size() > kMaxNames ? str(result, " and ", names.size() - kMaxNames, " more")
                                  : result;
}

}  // namespace

void RunPlaces::note_arguments(std::span<const Tensor> inputs, std::size_t formal_count) {
  arguments.resize(formal_count);
  are_copies.assign(formal_count, 0);
  for (std::size_t i = 0; i < formal_count; ++i) {
    const TensorBlock* const block = inputs[i].block();
    const bool may_give = block && block->kind == BlockKind::dense && inputs[i].ref().unique();
    arguments[i] = may_give ? block : nullptr;
  }
}

void RunPlaces::note_results(std::span<const Tensor> outputs) {
  results.resize(outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) results[k] = outputs[k].block();
}

std::string in_place_text(const Plan& plan, const RunPlaces& places) {
  const Graph& graph = plan.graph();
  const auto type_of = [&](ValueId v) -> const TensorType& {
    return PlanView::types(plan).types[v];
  };
  std::set<std::pair<DType, std::vector<std::int64_t>>> result_types;
  for (const ValueId v : graph.outputs)
    if (dense_bytes(type_of(v))) result_types.emplace(type_of(v).dtype(), type_of(v).sizes());
  const auto is_of_a_result = [&](const TensorType& type) {
    return result_types.contains({type.dtype(), type.sizes()});
  };
  const std::unordered_set<const TensorBlock*> results(places.results.begin(),
                                                       places.results.end());
  const PlanView::LastUses uses = PlanView::last_uses(plan);
  std::vector<std::string> in_place;
  std::vector<std::pair<std::string, std::vector<std::string>>> others;  // by reason
  for (std::size_t i = 0; i < places.arguments.size(); ++i) {
    const std::string name = i < graph.input_names.size() ? graph.input_names[i] : str("input ", i);
    const TensorType& type = type_of(graph.inputs[i]);
    if (!dense_bytes(type) || name == "random stream") continue;
    const TensorBlock* const block = places.arguments[i];
    if (block && !is_pipelined(plan, uses, i) && results.contains(block)) {
      in_place.push_back(name);
    } else if (is_of_a_result(type)) {
      const std::string why = places.are_copies[i] ? "its rows are sorted for the call"
                              : block              ? why_not(plan, uses, i)
                                                   : "held by another reference; move it in";
      auto group = std::find_if(others.begin(), others.end(),
                                [&](const auto& other) { return other.first == why; });
      if (group == others.end()) group = others.insert(group, {why, {}});
      group->second.push_back(name);
    }
  }
  std::string result;
  if (!in_place.empty()) result += str("in place: ", names_text(in_place), '\n');
  for (const auto& [why, names] : others)
    result += str("not in place: ", names_text(names), ", ", why, '\n');
  return result;
}

}  // namespace reel
