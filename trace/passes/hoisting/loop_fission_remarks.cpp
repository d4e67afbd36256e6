// The remarks of a LoopFission for explain().
#include <algorithm>

#include "reel/trace/passes/hoisting/loop_fission.h"

namespace reel {

void LoopFission::write_remarks(LoopRemarks& remarks) const {
  using Kind = LoopRemark::Kind;
  const std::vector<std::uint8_t> terms = find_terms();
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    const OpRecord& record = body_.records[r];
    const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
    const bool moves = is_hoisted_[r] || is_sunk_[r];
    const bool is_once = moves && placement_[out[0]] == Placement::invariant;
    const bool is_term = moves && !is_once && record.op->gains_from_batching && terms[out[0]];
    // A record that cannot leave may have dims that are unknown outside.
    const auto seen = [&](ValueId v, bool is_many) {
      return can_leave(record) ? outside(v, is_many) : body_.types[v];
    };
    std::vector<TensorType> from, to;
    for (const ValueId v : in)
      from.push_back(seen(v, moves && placement_[v] != Placement::invariant));
    for (const ValueId v : out) to.push_back(seen(v, moves && !is_once && !is_term));
    if (moves)
      remarks.say(is_sunk_[r] ? Kind::sunk : Kind::hoisted, *record.op, from, to,
                  is_once   ? "once"
                  : is_term ? "for all iterations at once, summed over them"
                            : "for all iterations at once");
    else if (record.op->gains_from_batching && asked_ == Leaves::all)
      remarks.say(Kind::stays, *record.op, from, to, why_inside(record));
  }
  if (stays_as_recurrence())
    remarks.say(Kind::stays, "a linear recurrence; linear_scan computes it in one pass");
}

/// Returns the reason why an op that would gain by leaving the loop stays in it.
std::string LoopFission::why_inside(const OpRecord& record) const {
  const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
  const auto any = [](std::span<const ValueId> values, const std::vector<std::uint8_t>& is) {
    return std::any_of(values.begin(), values.end(), [&](ValueId v) { return is[v]; });
  };
  if (may_fail_behind_print(record))
    return "it may fail, and a print comes before it in the iteration";
  if (!can_leave(record)) return "its sizes are known only inside an iteration";
  if (any(in, find_waiting()) && any(out, is_needed_))
    return any(out, find_needed(true))
               ? "loop-carried dependency"
               : "a list, a print or a gradient reads its value in each iteration";
  if (is_light(record)) return "faster inside, where its operands are in the cache";
  if (is_fast_inside(record))
    return "not faster if batched: it has enough rows, and its matrix stays in the cache";
  if (is_warm_inside(record)) return "faster inside, where its operands are in the cache";
  if (!keeps_rows(record) && !is_sum_over_entries(record, find_only_summed()))
    return "it may mix running and finished entries";
  if (record.recompute != Recompute::no) return "it recomputes values of each iteration";
  if (leaves_ != asked_)
    return is_open_ ? "an inner loop of unknown trip count may need any amount of memory"
                    : "the checkpoint policy allows its gradient the memory of few iterations";
  if (finished_ &&
      std::any_of(out.begin(), out.end(), [&](ValueId v) { return !finished_->fill(v); }))
    return "finished entries would read other values";
  return "it cannot be batched over iterations";
}

}  // namespace reel
