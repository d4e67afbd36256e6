// trace/passes/analysis/finished_values.h — FinishedValues, an analysis of a body's values for
// finished entries.
#pragma once

#include <optional>
#include <vector>

#include "reel/trace/passes/analysis/row_axes.h"

namespace reel {

/// Classifies the values of a loop's body for finished entries, if entries finish one by one along
/// one dim:
/// - equal to the value of a running entry, if it is computed only from inputs that finished
///   entries read from a running one;
/// - zero, if it is linear in cotangents;
/// - anything else.
class FinishedValues {
 public:
  /// inputs: types of the op's inputs.
  FinishedValues(const LoopAttrs& attrs, std::span<const TensorType> inputs);

  /// Returns true if a type outside the body has the dim of the entries.
  bool has_entries(const TensorType& type) const { return find(type.dims(), entry_) >= 0; }
  const RowAxes& rows() const { return rows_; }
  bool is_mixed(ValueId v) const {
    return rows_[v] == RowAxes::kMixed || rows_[v] == RowAxes::kSummed;
  }
  /// Returns true if the type has neither the dim of the entries nor a dim with one length per
  /// entry.
  bool has_no_rows(ValueId v) const;
  /// Returns true if several entries contribute to one output element of the record.
  bool mixes(const OpRecord& record) const;
  /// Returns the fill that gives finished entries the value that the body computed for them;
  /// nothing if there is none.
  std::optional<FinishedFill> fill(ValueId v) const;
  /// Returns the fill for a gradient that reads the value as a residual. A random draw differs
  /// between a finished entry and the running one. If no op mixes entries, results of finished
  /// entries are discarded and their cotangents are zero, so either draw gives the same gradient.
  std::optional<FinishedFill> fill_of_residual(ValueId v) const;

  /// Returns true if the padding of the value counts (find_filled_padding). A loop does not keep
  /// such padding in a stack if it is beyond the ends of all running entries.
  bool has_filled_padding(ValueId v) const { return has_filled_padding_[v]; }

  /// Returns true if the record gives zero for finished entries, or, for a sum over entries, if
  /// they add zero to it.
  bool is_zero_in_finished(const OpRecord& record) const;

 private:
  /// Returns true if draws read the value, as numbers of their rows, and no other op does.
  bool numbers_draws(ValueId v) const;

  FinishedFill running(ValueId v) const {
    return has_filled_padding_[v] ? FinishedFill::running_padding : FinishedFill::running;
  }

  const Graph& body_;
  Dim entry_;
  RowAxes rows_;
  std::vector<std::uint8_t> is_running_, is_zero_, is_drawn_;  // by value
  std::vector<std::uint8_t> has_filled_padding_;               // by value; see filled_padding.h
  bool draws_count_for_nothing_ = false;
};

/// Returns true if values of finished entries may contribute to values of running ones, as in a
/// mean over the entries. inputs: types of the op's inputs. Requires entries. If they have several
/// dims, or if the body has ops that are not followed, such as loops, returns true.
bool may_couple_entries(const LoopAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
