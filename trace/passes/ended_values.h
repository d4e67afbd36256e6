// trace/passes/ended_values.h — EndedValues, what the body of a loop computes for ended entries.
#pragma once

#include <optional>
#include <vector>

#include "reel/trace/passes/row_axes.h"

namespace reel {

/// What values of a body are for entries that have ended, in a loop whose entries end one by one
/// along one dim: what they are for the live entry that those see, where that is all they are made
/// of; zero, if they are linear in cotangents; or something else.
class EndedValues {
 public:
  /// inputs: types of the op's.
  EndedValues(const LoopAttrs& attrs, std::span<const TensorType> inputs);

  /// A type outside the body has the dim of the entries.
  bool has_entries(const TensorType& type) const { return find(type.dims(), entry_) >= 0; }
  const RowAxes& rows() const { return rows_; }
  bool is_mixed(ValueId v) const {
    return rows_[v] == RowAxes::kMixed || rows_[v] == RowAxes::kSummed;
  }
  /// Its type has no dim of the entries, nor one with a length for each.
  bool has_no_rows(ValueId v) const;
  /// The record gives values of which several entries have a part in each.
  bool mixes(const OpRecord& record) const;
  /// The fill that gives ended entries the value that the body computed for them; none where no
  /// fill does.
  std::optional<Fill> fill(ValueId v) const;
  /// The same for a gradient that reads what was saved. What an ended entry drew is its own, and
  /// not that of the live one; but where no op mixes entries, all that it was for was thrown away,
  /// and its cotangent is zero, whichever of the two it is multiplied by.
  std::optional<Fill> fill_of_saved(ValueId v) const;

  /// The record gives zero for entries that have ended; a sum over entries, that they add nothing.
  bool is_zero_in_ended(const OpRecord& record) const;

 private:
  const Graph& body_;
  Dim entry_;
  RowAxes rows_;
  std::vector<std::uint8_t> is_live_, is_zero_, is_drawn_;  // by value
  bool draws_count_for_nothing_ = false;
};

}  // namespace reel
