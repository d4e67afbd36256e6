// RowAxes of loops, for rows in any order.
#include <algorithm>

#include "reel/core/dims/dim_env.h"
#include "reel/core/ops/control/effects.h"
#include "reel/trace/passes/analysis/finished_values.h"
#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {
namespace {

/// Returns true for loops that make no dims, keep all steps in memory, and run until their dim or
/// their entries end.
bool is_followed(const OpRecord& record, const LoopAttrs& attrs, const Dim& rows) {
  const auto is_elsewhere = [&](const LoopStack& stack) {
    return stack.is_list || stack.is_in_file() || stack.dim == rows;
  };
  return !has_effects(record) && !attrs.cond && !attrs.trips.makes_dim && !attrs.has_windows() &&
         !attrs.chunking.over_chunks && !attrs.chunking.within_chunk &&
         std::ranges::none_of(attrs.stacks, is_elsewhere);
}

/// Calls fn for each symbol that the record's attributes name.
template <class Fn>
void each_symbol_named(const OpRecord& record, Fn&& fn) {
  if (record.attrs) record.attrs->each_symbol([&](const Dim& dim) { for_each_symbol(dim, fn); });
}

/// Returns true if values of finished entries are added to the first running entry. The result then
/// depends on the place of this entry.
bool moves_finished(const LoopAttrs& attrs, const RowAxes& inside, const FinishedValues& finished) {
  const auto moves = [&](const auto& leaves, std::span<const ValueId> terms) {
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].adds_finished && inside[terms[i]] >= 0 &&
          finished.fill(terms[i]) != FinishedFill::zero)
        return true;
    return false;
  };
  const auto made = body_outputs(attrs);
  return moves(attrs.carries, made.carries) || moves(attrs.stacks, made.stacks) ||
         moves(attrs.sums, made.sums);
}

}  // namespace

/// Returns the axis or kind of a result for rows in any order. A sum over rows has none, unless
/// finished rows contribute: these read the first running row, which depends on the order.
int RowAxes::in_any_order(const OpRecord& record, int axis) const {
  if (axis != kSummed) return axis;
  return has_finished_ && !(finished_ && finished_->is_zero_in_finished(record)) ? kMixed : kNone;
}

/// Returns true if the record's attributes name a dim of mixed_dims_.
bool RowAxes::names_mixed_dim(const OpRecord& record) const {
  bool result = false;
  const auto look = [&](const Dim& dim) { result = result || contains(mixed_dims_, dim); };
  if (!mixed_dims_.empty()) each_symbol_named(record, look);
  return result;
}

/// Notes the dims that the record itself makes, if its result depends on the order of the rows.
void RowAxes::note_mixed_dims(const OpRecord& record) {
  const auto out = graph_.outputs_of(record);
  if (std::ranges::none_of(out, [&](ValueId v) { return axes_[v] == kMixed; })) return;
  Dims given;
  const auto add = [&](const Dim& dim) { given.push_back(dim); };
  each_symbol_named(record, add);
  for (const ValueId v : graph_.inputs_of(record)) for_each_symbol(type(v), add);
  for (const ValueId v : out)
    for_each_symbol(type(v), [&](const Dim& dim) {
      if (!contains(given, dim) && !contains(mixed_dims_, dim)) mixed_dims_.push_back(dim);
    });
}

/// A loop treats its rows alike if its body does: carries, slices and captures of the body have
/// rows as the operands do.
void RowAxes::follow_loop(const OpRecord& record) {
  const auto& attrs = get<LoopAttrs>(record.attrs.get());
  const auto in = graph_.inputs_of(record), out = graph_.outputs_of(record);
  const auto refuse = [&](const Op* mixing) {
    for (const ValueId v : out) axes_[v] = kMixed;
    note_mixed_dims(record);
    if (!first_mixing_) first_mixing_ = mixing;
  };
  const auto is_mixed = [&](ValueId v) { return axes_[v] == kMixed || type(v).is_list(); };
  if (!is_followed(record, attrs, rows_) || std::ranges::any_of(in, is_mixed) ||
      names_mixed_dim(record))
    return refuse(record.op);
  const Graph& body = *attrs.body.graph;
  const auto operands = operands_of(attrs, in);
  const auto formals = body_inputs(attrs);
  std::vector<int> seeds(body.types.size(), kNone);
  for (std::size_t i = 0; i < formals.carries.size(); ++i)
    seeds[formals.carries[i]] = axes_[operands.carries[i]];
  for (std::size_t i = 0; i < formals.slices.size(); ++i) {
    const int axis = axes_[operands.slices[i]];
    if (axis == 0) return refuse(record.op);  // the loop runs along the rows
    seeds[formals.slices[i]] = axis < 0 ? axis : axis - 1;
  }
  for (std::size_t i = 0; i < formals.captures.size(); ++i)
    seeds[formals.captures[i]] =
        axes_[operands.captures[static_cast<std::size_t>(attrs.body_captures[i])]];
  Dim rows = rows_;
  for (const ValueId v : body.inputs)
    if (seeds[v] >= 0) rows = body.types[v].dims()[static_cast<std::size_t>(seeds[v])];
  RowAxes inside(body, rows, Joint::any_order);
  for (const ValueId v : body.inputs) inside.seed(v, seeds[v]);
  std::optional<FinishedValues> finished;
  if (operands.lengths && contains(type(*operands.lengths).dims(), rows_)) {
    if (attrs.entries.dims.size() > 1) return refuse(record.op);  // a sum over any of them counts
    finished.emplace(attrs, graph_.types_of(in));
    if (!has_finished_) inside.finished_ = &*finished;
  }
  inside.has_finished_ = has_finished_ || finished;
  inside.follow();
  if (finished && moves_finished(attrs, inside, *finished)) return refuse(record.op);

  const auto made = body_outputs(attrs);
  const auto results = results_of(attrs, out);
  const auto is_made = [&](ValueId v, int axis) { return inside[v] == axis && axis != kMixed; };
  for (std::size_t i = 0; i < made.carries.size(); ++i) {
    const int axis = seeds[formals.carries[i]];
    if (!is_made(made.carries[i], axis)) return refuse(inside.first_mixing_);
    axes_[results.carries[i]] = axis;
  }
  for (std::size_t j = 0; j < made.stacks.size(); ++j) {
    const int axis = inside[made.stacks[j]];
    if (axis == kMixed) return refuse(inside.first_mixing_);
    axes_[results.stacks[j]] = axis < 0 ? axis : axis + 1;
  }
  for (std::size_t i = 0; i < made.sums.size(); ++i) {
    const int axis = inside[made.sums[i]];
    if (axis == kMixed) return refuse(inside.first_mixing_);
    axes_[results.sums[i]] = axis;
  }
  axes_[results.trips] = kNone;
}

}  // namespace reel
