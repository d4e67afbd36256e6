#include "reel/trace/passes/hoisting/loop_motion_uses.h"

#include <algorithm>

namespace reel {

LoopMotionUses::LoopMotionUses(const LoopAttrs& attrs, const LoopFission& split)
    : body_(*attrs.body.graph),
      split_(split),
      leaves_(body_.types.size()),
      has_values_(body_.types.size()),
      has_sum_(body_.types.size()) {
  for (std::size_t r = 0; r < body_.records.size(); ++r)
    for (const ValueId v : body_.outputs_of(body_.records[r]))
      leaves_[v] = split_.is_sunk(r) || split_.is_hoisted(r);
  const auto need_inside = [&](ValueId v) { has_values_[v] = has_values_[v] || leaves_[v]; };
  const auto need_terms = [&](const auto& leaves, std::span<const ValueId> terms,
                              std::vector<std::uint8_t>& is_made) {
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (makes(leaves[i], terms[i]))
        is_made[terms[i]] = 1;
      else
        need_inside(terms[i]);
  };
  const auto outputs = body_outputs(attrs);
  for (const ValueId v : outputs.carries) need_inside(v);
  need_terms(attrs.stacks, outputs.stacks, has_values_);
  need_terms(attrs.sums, outputs.sums, has_sum_);
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    const ValueId first = body_.outputs_of(record)[0];
    const bool is_of_sums = has_sum_[first] && split_.sums_come_first(record);
    for (const ValueId v : body_.inputs_of(record)) {
      if (!leaves_[first])
        need_inside(v);
      else if (results_of(record) ||
               (has_sum_[first] && !(is_of_sums && split_.placement(v) != Placement::invariant)))
        has_values_[v] = 1;
      else if (is_of_sums)
        has_sum_[v] = 1;
    }
  }
}

bool LoopMotionUses::results_of(const OpRecord& record) const {
  const auto out = body_.outputs_of(record);
  const bool sums_without = split_.sums_come_first(record) || record.op->gains_from_batching;
  return std::any_of(out.begin(), out.end(), [&](ValueId v) {
    return has_values_[v] || (has_sum_[v] && !(sums_without && v == out[0]));
  });
}

}  // namespace reel
