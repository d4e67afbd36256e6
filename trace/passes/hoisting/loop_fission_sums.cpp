// Sums over time steps in a LoopFission.
#include <algorithm>

#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/trace/passes/hoisting/loop_fission.h"

namespace reel {

/// Returns true for a sum over entries, of values that each entry has on its own, that only feeds a
/// sum over time steps.
bool LoopFission::is_sum_over_entries(const OpRecord& record,
                                      const std::vector<std::uint8_t>& is_only_summed) const {
  if (!ended_ || !record.op->gains_from_batching) return false;
  const auto in = body_.inputs_of(record);
  const ValueId out = body_.outputs_of(record)[0];
  return is_only_summed[out] &&
         std::none_of(in.begin(), in.end(), [&](ValueId v) { return ended_->is_mixed(v); }) &&
         ended_->is_mixed(out) && ended_->is_zero_in_ended(record) &&
         !ended_->has_entries(env_.resolve(body_.types[out]));
}

/// Returns, by value, whether only sums of the loop read it.
std::vector<std::uint8_t> LoopFission::find_only_summed() const {
  std::vector<std::uint8_t> result(body_.types.size());
  const auto sums = body_.outputs.begin() + attrs_.carries + attrs_.stacks;
  for (auto it = sums; it != body_.outputs.end(); ++it) result[*it] = 1;
  for (auto it = body_.outputs.begin(); it != sums; ++it) result[*it] = 0;
  for (const OpRecord& record : body_.records)
    for (const ValueId v : body_.inputs_of(record)) result[v] = 0;
  return result;
}

/// Returns, by value, whether only sums of the loop read it, directly or through linear ops.
std::vector<std::uint8_t> LoopFission::find_added() const {
  std::vector<std::uint8_t> result(body_.types.size(), 1);
  const auto sums = body_.outputs.begin() + attrs_.carries + attrs_.stacks;
  for (auto it = body_.outputs.begin(); it != sums; ++it) result[*it] = 0;
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    if (result[body_.outputs_of(record)[0]] && is_linear(record)) continue;
    for (const ValueId v : body_.inputs_of(record)) result[v] = 0;
  }
  return result;
}

/// Returns, by value, whether it feeds sums that can be made outside, through ops that are no sums
/// or products themselves. Only these sums may depend on it.
std::vector<std::uint8_t> LoopFission::find_terms_inside() const {
  std::vector<std::uint8_t> result(body_.types.size());
  for (std::size_t k = attrs_.first_sum(); k < body_.outputs.size(); ++k)
    result[body_.outputs[k]] = can_make_outside(k);
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    const ValueId out = body_.outputs_of(record)[0];
    if (!result[out] || is_needed_[out] || record.op->gains_from_batching) continue;
    for (const ValueId v : body_.inputs_of(record)) result[v] = 1;
  }
  return result;
}

bool LoopFission::is_linear(const OpRecord& record) const {
  const auto in = body_.inputs_of(record), out = body_.outputs_of(record);
  if (!record.op->vjp || out.size() != 1 || !is_float(body_.types[out[0]].dtype()) ||
      !std::all_of(in.begin(), in.end(),
                   [&](ValueId v) { return is_float(body_.types[v].dtype()) && !has_own_rows(v); }))
    return false;
  const auto is_once = [&](ValueId v) { return placement_[v] == Placement::invariant; };
  const auto constants = std::count_if(in.begin(), in.end(), is_once);
  if (record.op == &mul_op) return constants == 1;
  if (record.op == &div_op) return constants == 1 && is_once(in[1]);
  const OpReads reads = reads_of(*record.op, record.attrs.get(), ~0u);
  return constants == 0 && !reads.inputs && !reads.outputs;
}

bool LoopFission::sums_come_first(const OpRecord& record) const {
  if (!is_linear(record)) return false;
  if (!record.op->gains_from_batching) return true;
  const ValueId term = body_.inputs_of(record)[0];
  for (std::size_t r = 0; r < body_.records.size(); ++r)
    if ((is_sunk_[r] || is_hoisted_[r]) && body_.outputs_of(body_.records[r])[0] == term)
      return body_.records[r].op->gains_from_batching || is_linear(body_.records[r]);
  return false;
}

/// Returns, by value, whether sums of the loop read it, directly or through linear ops that leave
/// the loop.
std::vector<std::uint8_t> LoopFission::find_terms() const {
  std::vector<std::uint8_t> is_term(body_.types.size());
  const auto first = body_.outputs.begin() + attrs_.carries + attrs_.stacks;
  for (auto it = first; it != body_.outputs.end(); ++it) is_term[*it] = 1;
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    if ((is_sunk_[r] || is_hoisted_[r]) && is_term[body_.outputs_of(record)[0]] &&
        sums_come_first(record))
      for (const ValueId v : body_.inputs_of(record))
        is_term[v] = placement_[v] != Placement::invariant;
  }
  return is_term;
}

}  // namespace reel
