#include "reel/trace/passes/analysis/finished_values.h"

#include <algorithm>

#include "reel/core/graph/record_call.h"
#include "reel/core/op/facts.h"
#include "reel/trace/passes/analysis/filled_padding.h"

namespace reel {

FinishedValues::FinishedValues(const LoopAttrs& attrs, std::span<const TensorType> inputs)
    : body_(*attrs.body.graph),
      entry_(entry_dim(attrs, inputs)),
      rows_(entry_rows(attrs, inputs)),
      is_running_(body_.types.size(), 1),
      is_zero_(body_.types.size(), 0),
      is_drawn_(body_.types.size(), 0),
      has_filled_padding_(find_filled_padding(attrs)) {
  const auto adds = [](const auto& leaf) { return leaf.adds_finished; };
  draws_count_for_nothing_ = attrs.sums.empty() && std::ranges::none_of(attrs.carries, adds) &&
                             std::ranges::none_of(attrs.stacks, adds);
  for (std::size_t i = 1; i < body_.inputs.size(); ++i) {
    const ValueId v = body_.inputs[i];
    if (rows_[v] == RowAxes::kNone || numbers_draws(v)) continue;
    const FinishedFill fill = fill_of(attrs, body_input_at(attrs, i));
    is_running_[v] = fill == FinishedFill::running || fill == FinishedFill::running_padding;
    is_zero_[v] = fill == FinishedFill::zero;
  }
  for (const OpRecord& record : body_.records) {
    const auto in = body_.inputs_of(record);
    const bool mixes_entries = mixes(record);
    const bool is_running = !mixes_entries && std::all_of(in.begin(), in.end(), [&](ValueId v) {
      return is_running_[v];
    });
    const auto out = body_.outputs_of(record);
    const bool is_apart =
        std::all_of(out.begin(), out.end(), [&](ValueId v) { return rows_.made_of_one_row(v); });
    const bool is_zero = (!mixes_entries || is_apart) && is_zero_in_finished(record);
    // Each entry draws its own numbers, even from operands that all entries share.
    const bool is_drawn = rows_.draws(record) || std::any_of(in.begin(), in.end(), [&](ValueId v) {
                            return is_drawn_[v];
                          });
    for (const ValueId v : out) {
      draws_count_for_nothing_ = draws_count_for_nothing_ && !mixes_entries;
      is_running_[v] = is_running;
      is_drawn_[v] = is_drawn;
      is_zero_[v] = makes_zeros(*record.op, record.attrs.get()) || (is_zero && rows_[v] >= 0);
    }
  }
}

bool may_couple_entries(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  if (attrs.entries.dims.size() > 1) return true;
  const FinishedValues finished(attrs, inputs);
  return std::ranges::any_of(attrs.body.graph->records, [&](const OpRecord& record) {
    return finished.mixes(record) && !finished.is_zero_in_finished(record);
  });
}

bool FinishedValues::numbers_draws(ValueId v) const {
  bool draws = false;
  for (const OpRecord& record : body_.records) {
    const auto in = body_.inputs_of(record);
    if (std::ranges::count(in, v) == 0) continue;
    const AxisFactors factors = axis_factors(*RecordCall(body_, record));
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i] != v) continue;
      const int factor = body_.types[v].rank() == 1 ? factors.in(i, 0) : AxisFactors::kWhole;
      if (factor == AxisFactors::kWhole || factors.role(factor) != Role::drawn) return false;
      draws = true;
    }
  }
  return draws;
}

bool FinishedValues::mixes(const OpRecord& record) const {
  const auto out = body_.outputs_of(record);
  return std::any_of(out.begin(), out.end(),
                     [&](ValueId v) { return is_mixed(v) || rows_.made_jointly(v); });
}

bool FinishedValues::has_no_rows(ValueId v) const {
  const TensorType& type = body_.types[v];
  return !type.is_list() && !rows_.has_rows(type) && !has_lengths_over(type, rows_.dim());
}

bool FinishedValues::is_zero_in_finished(const OpRecord& record) const {
  const auto in = body_.inputs_of(record);
  const std::uint32_t zeros =
      operand_bits(in.size(), [&](std::size_t i) { return is_zero_[in[i]] != 0; });
  return gives_zero(*record.op, record.attrs.get(), zeros, in.size());
}

std::optional<FinishedFill> FinishedValues::fill(ValueId v) const {
  if (is_mixed(v)) return std::nullopt;
  if (is_zero_[v]) return FinishedFill::zero;
  return is_running_[v] && !is_drawn_[v] ? std::optional(running(v)) : std::nullopt;
}

std::optional<FinishedFill> FinishedValues::fill_of_residual(ValueId v) const {
  if (!is_mixed(v) && is_running_[v] && is_drawn_[v] && draws_count_for_nothing_) return running(v);
  return fill(v);
}

}  // namespace reel
