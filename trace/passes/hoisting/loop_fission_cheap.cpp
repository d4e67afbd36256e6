// The ops of a LoopFission that are as cheap in each iteration, where their operands are in the
// cache.
#include <algorithm>
#include <array>

#include "reel/core/graph/record_call.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/shape/element_order.h"
#include "reel/trace/passes/hoisting/loop_fission.h"

namespace reel {
namespace {

/// A value of this many elements in an iteration is worth the call of an op in each iteration.
constexpr std::int64_t kLargeStep = 4096;

}  // namespace

/// Returns true for a product with one multiplication per element of its large operand or result.
/// It takes as long as reading and writing its memory, so that batching gains nothing, and in an
/// iteration the large value is in the cache. Terms of sums over iterations are better
/// made and summed at once.
bool LoopFission::is_light(const OpRecord& record) const {
  const auto in = body_.inputs_of(record);
  const ValueId out = body_.outputs_of(record)[0];
  if (!is_product(*record.op) || is_term_[out]) return false;
  std::int64_t largest = 0;
  for (const ValueId v : {in[0], in[1], out}) {
    if (!body_.types[v].is_known() || placement_[v] == Placement::invariant) return false;
    largest = std::max(largest, body_.types[v].numel());
  }
  const std::array operands{body_.types[in[0]], body_.types[in[1]]};
  const std::array made{body_.types[out]};
  const OpCall call{*record.op, record.attrs.get(), operands, made};
  return largest >= kLargeStep && multiplications(call) == largest;
}

/// In a gradient loop, slices are residuals, and an element-wise op (or one that only changes dims)
/// is as cheap inside: its result stays in the cache. It is hoisted only if a record that leaves
/// the loop reads it, or if nothing inside does.
void LoopFission::keep_cheap_inside() {
  std::vector<std::uint8_t> is_read_outside = find_outputs(true);
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    const auto out = body_.outputs_of(record);
    if (!is_hoisted_[r]) continue;
    const bool is_cheap = record.op->pointwise || keeps_elements(*record.op);
    const bool is_outside_term = is_term_[out[0]] && record.recompute == Recompute::no;
    if (is_cheap && placement_[out[0]] == Placement::batched && !is_read_outside[out[0]] &&
        !is_outside_term) {
      is_hoisted_[r] = 0;
      placement_[out[0]] = Placement::in_loop;
      continue;
    }
    for (const ValueId v : body_.inputs_of(record)) is_read_outside[v] = 1;
  }
}

/// Returns true for an element-wise op, or an op that repeats elements, if its result is large and
/// its operands are much smaller, invariant, or in `is_grown`.
bool LoopFission::grows_in_step(const OpRecord& record,
                                const std::vector<std::uint8_t>& is_grown) const {
  constexpr std::int64_t kTimes = 4;
  const TensorType& made = body_.types[body_.outputs_of(record)[0]];
  if (!(record.op->pointwise || repeats_elements(*RecordCall(body_, record))) || !made.is_known() ||
      made.numel() < kLargeStep)
    return false;
  const auto in = body_.inputs_of(record);
  return std::all_of(in.begin(), in.end(), [&](ValueId v) {
    const TensorType& read = body_.types[v];
    return placement_[v] == Placement::invariant || is_grown[v] ||
           (read.is_known() && read.numel() * kTimes <= made.numel());
  });
}

/// Large values that an iteration computes from small slices stay in the cache inside, instead of
/// going through memory for all iterations at once. They are hoisted only if a record that leaves
/// the loop reads them, or if nothing inside does.
void LoopFission::keep_grown_inside() {
  std::vector<std::uint8_t> is_grown(body_.types.size()), is_read_inside(is_grown),
      is_read_outside(is_grown);
  for (std::size_t r = 0; r < body_.records.size(); ++r) {
    const OpRecord& record = body_.records[r];
    const ValueId out = body_.outputs_of(record)[0];
    is_grown[out] =
        is_hoisted_[r] && placement_[out] == Placement::batched && grows_in_step(record, is_grown);
  }
  for (std::size_t r = body_.records.size(); r-- > 0;) {
    const OpRecord& record = body_.records[r];
    const ValueId out = body_.outputs_of(record)[0];
    if (is_grown[out] && is_read_inside[out] && !is_read_outside[out]) {
      is_hoisted_[r] = 0;
      placement_[out] = Placement::in_loop;
    }
    for (const ValueId v : body_.inputs_of(record))
      (is_hoisted_[r] ? is_read_outside : is_read_inside)[v] = 1;
  }
}

}  // namespace reel
