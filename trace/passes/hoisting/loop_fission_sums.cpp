// Sums over time steps and linear recurrences in a LoopFission, and the values that outputs and
// carries depend on.
#include <algorithm>

#include "reel/core/op/facts.h"
#include "reel/core/ops/control/effects.h"
#include "reel/core/ops/creation/creation.h"
#include "reel/core/ops/elementwise/elementwise.h"
#include "reel/trace/passes/hoisting/loop_fission.h"

namespace reel {

/// Returns, by value, whether it is the term of a stack or sum for which can_make_outside() returns
/// `outside`.
std::vector<std::uint8_t> LoopFission::find_outputs(bool outside) const {
  std::vector<std::uint8_t> result(body_.types.size());
  const auto add = [&](const auto& leaves, std::span<const ValueId> terms) {
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (can_make_outside(leaves[i]) == outside) result[terms[i]] = 1;
  };
  add(attrs_.stacks, body_outputs(attrs_).stacks);
  add(attrs_.sums, body_outputs(attrs_).sums);
  return result;
}

/// Returns, by value, whether a carry depends on it, or (unless by_carries_only) an output or
/// effect that stays inside.
std::vector<std::uint8_t> LoopFission::find_needed(bool by_carries_only) const {
  std::vector<std::uint8_t> is_needed(body_.types.size());
  if (!by_carries_only) is_needed = find_outputs(false);
  for (const ValueId v : body_outputs(attrs_).carries) is_needed[v] = 1;
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    const auto out = body_.outputs_of(record);
    if ((!by_carries_only && has_effects(record)) ||
        std::any_of(out.begin(), out.end(), [&](ValueId v) { return is_needed[v]; }))
      for (const ValueId v : body_.inputs_of(record)) is_needed[v] = 1;
  }
  return is_needed;
}

/// Returns, by value, whether it depends on a carry.
std::vector<std::uint8_t> LoopFission::find_waiting() const {
  std::vector<std::uint8_t> is_waiting(body_.types.size());
  for (const ValueId v : body_inputs(attrs_).carries) is_waiting[v] = 1;
  for (const OpRecord& record : body_.records) {
    const auto in = body_.inputs_of(record);
    if (std::any_of(in.begin(), in.end(), [&](ValueId v) { return is_waiting[v]; }))
      for (const ValueId v : body_.outputs_of(record)) is_waiting[v] = 1;
  }
  return is_waiting;
}

/// Returns true if the only state is h = a * h + b, where no other op of the iteration reads h or a
/// value that depends on it.
bool LoopFission::stays_as_recurrence() const {
  if (attrs_.carries.size() != 1) return false;
  const ValueId state = body_inputs(attrs_).carries[0], next = body_outputs(attrs_).carries[0];
  std::vector<std::uint8_t> depends(body_.types.size());
  depends[state] = 1;
  std::vector<const Op*> ops;  // that depend on the state
  for (const OpRecord& record : body_.records) {
    const auto in = body_.inputs_of(record);
    const auto reads = std::ranges::count_if(in, [&](ValueId v) { return depends[v] != 0; });
    if (reads == 0) continue;
    if (reads > 1) return false;
    ops.push_back(record.op);
    for (const ValueId v : body_.outputs_of(record)) depends[v] = 1;
  }
  return depends[next] && next != state && ops == std::vector<const Op*>{&mul_op, &add_op};
}

/// Returns true for a sum over entries, of values that each entry has on its own, that only feeds a
/// sum over time steps.
bool LoopFission::is_sum_over_entries(const OpRecord& record,
                                      const std::vector<std::uint8_t>& is_only_summed) const {
  if (!finished_ || !record.op->gains_from_batching) return false;
  const auto in = body_.inputs_of(record);
  const ValueId out = body_.outputs_of(record)[0];
  return is_only_summed[out] &&
         std::none_of(in.begin(), in.end(), [&](ValueId v) { return finished_->is_mixed(v); }) &&
         finished_->is_mixed(out) && finished_->is_zero_in_finished(record) &&
         !finished_->has_entries(env_.resolve(body_.types[out]));
}

/// Returns, by value, whether only sums of the loop read it.
std::vector<std::uint8_t> LoopFission::find_only_summed() const {
  std::vector<std::uint8_t> result(body_.types.size());
  const auto outputs = body_outputs(attrs_);
  for (const ValueId v : outputs.sums) result[v] = 1;
  for (const ValueId v : outputs.carries) result[v] = 0;
  for (const ValueId v : outputs.stacks) result[v] = 0;
  for (const OpRecord& record : body_.records)
    for (const ValueId v : body_.inputs_of(record)) result[v] = 0;
  return result;
}

/// Returns, by value, whether only sums of the loop read it, directly or through linear ops.
std::vector<std::uint8_t> LoopFission::find_added() const {
  std::vector<std::uint8_t> result(body_.types.size(), 1);
  const auto outputs = body_outputs(attrs_);
  for (const ValueId v : outputs.carries) result[v] = 0;
  for (const ValueId v : outputs.stacks) result[v] = 0;
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
  const auto terms = body_outputs(attrs_).sums;
  for (std::size_t i = 0; i < terms.size(); ++i)
    result[terms[i]] = can_make_outside(attrs_.sums[i]);
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
  if (out.size() != 1 || !is_float(body_.types[out[0]].dtype())) return false;
  const auto is_term = [&](std::size_t i) { return placement_[in[i]] != Placement::invariant; };
  std::size_t terms = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (is_term(i) && !is_float(body_.types[in[i]].dtype())) return false;
    terms += is_term(i);
  }
  // Products with an invariant factor are hoisted whole.
  if (terms != in.size() && !(terms == 1 && record.op->pointwise)) return false;
  return is_linear_in(
      *record.op, record.attrs.get(), operand_bits(in.size(), is_term),
      operand_bits(in.size(), [&](std::size_t i) { return !is_term(i) && is_zero(in[i]); }),
      in.size());
}

/// Returns true for zeros that the body makes.
bool LoopFission::is_zero(ValueId v) const {
  if (makers_[v] == kNone) return false;
  const OpRecord& record = body_.records[makers_[v]];
  return makes_zeros(*record.op, record.attrs.get());
}

const OpRecord* LoopFission::leaving_maker(ValueId v) const {
  const std::size_t r = makers_[v];
  return r != kNone && (is_sunk_[r] || is_hoisted_[r]) ? &body_.records[r] : nullptr;
}

bool LoopFission::sums_come_first(const OpRecord& record) const {
  if (!is_linear(record)) return false;
  if (!record.op->gains_from_batching) return true;
  const OpRecord* const maker = leaving_maker(body_.inputs_of(record)[0]);
  return maker && (maker->op->gains_from_batching || is_linear(*maker));
}

/// Returns, by value, whether sums of the loop read it, directly or through linear ops that leave
/// the loop.
std::vector<std::uint8_t> LoopFission::find_terms() const {
  std::vector<std::uint8_t> is_term(body_.types.size());
  for (const ValueId v : body_outputs(attrs_).sums) is_term[v] = 1;
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
