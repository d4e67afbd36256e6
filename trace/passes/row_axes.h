// trace/passes/row_axes.h — RowAxes, where the rows of a graph's values are, and which ops mix
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reel/core/ops/loop.h"

namespace reel {

struct GatherAttrs;  // core/ops/index.h

/// Follows one dim, that of the rows, through the values of a graph: row r of a value depends on
/// row r of the inputs that have rows, and on inputs without, for as long as every op on the way
/// treats rows each for itself.
class RowAxes {
 public:
  static constexpr int kNone = -1;    ///< the same for all rows
  static constexpr int kMixed = -2;   ///< made of several rows, or by an op that is not known
  static constexpr int kSummed = -3;  ///< a sum over all rows of what each has

  /// Of a value that several rows have a part in and that has the dim itself, a named one.
  enum class Joint : std::uint8_t {
    mixed,  ///< it has no rows, nor has what is made of it
    rows,   ///< it has, but they are its own: made_jointly() says so
  };
  /// rows: what the graph calls the dim.
  RowAxes(const Graph& graph, const Dim& rows, Joint joint = Joint::mixed);

  /// Input v has rows at that axis. Before follow().
  void seed(ValueId v, int axis) { axes_[v] = axis; }
  void follow();

  /// Where the rows of a value are; kNone, kMixed.
  int operator[](ValueId v) const { return axes_[v]; }
  /// A row of the value depends on other rows of what it is made of.
  bool made_jointly(ValueId v) const { return is_joint_[v]; }
  /// And yet no op mixed them: it took a row, and what several rows gave that has none.
  bool made_of_one_row(ValueId v) const { return is_of_one_row_[v]; }
  /// What the graph calls the dim.
  const Dim& dim() const { return rows_; }
  bool has_rows(const TensorType& type) const { return contains(type.dims(), rows_); }
  /// The op that mixed rows first, or may have; null if none did.
  const Op* first_mixing() const { return first_mixing_; }

 private:
  void follow_records();
  void find_joint_rows(const OpRecord& record);
  int axis_beside_sums(const OpRecord& record);
  const Op* summing_op(std::span<const ValueId> in) const;
  const Op* drawing_op(const OpRecord& record) const;
  int axis_made(const OpRecord& record) const;
  int axis_of(const OpRecord& record) const;
  int axis_of_all(const OpRecord& record, std::span<const ValueId> in) const;
  int of_elements(std::span<const ValueId> in, const TensorType& result) const;
  int of_product(const OpRecord& record, std::span<const ValueId> in) const;
  int of_gather(const GatherAttrs& attrs, int in_x, int in_indices) const;
  int of_scatter(const GatherAttrs& attrs, std::span<const ValueId> in) const;
  void follow_fused(const OpRecord& record);
  const TensorType& type(ValueId v) const { return graph_.types[v]; }

  const Graph& graph_;
  Dim rows_;
  Joint joint_;
  std::vector<int> axes_;                    // by value
  std::vector<std::uint8_t> is_joint_;       // by value: has rows, made of several
  std::vector<std::uint8_t> is_of_one_row_;  // by value: made jointly, by an op that mixes no rows
  std::vector<std::uint8_t> is_uniform_;     // by value: one number everywhere
  std::vector<const Op*> drawn_;             // by value without rows: what drew it
  bool draws_have_rows_ = false;             // their first axis is that, where it is as long
  const Op* first_mixing_ = nullptr;
};

/// The dim that counts the rows of a loop's state: that of its entries, or else the first one of
/// the first carry that has dims. carries: their types, around the loop or in its body.
std::optional<Dim> dim_of_rows(const LoopAttrs& attrs, std::span<const TensorType> carries);

/// Some dim of the type has a length for each element of `dim`: a row is no tensor like the others.
bool has_lengths_over(const TensorType& type, const Dim& dim);

/// What the types of a loop's inputs call the dim that its entries have, of a loop that has one.
/// (Its attributes may have it by the name that the traced function gives it.)
Dim entry_dim(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// The body of a loop whose entries, along one dim, end one by one; its rows are entries, of what
/// is made jointly too: what is made of that may be made of all steps' at once, as of slices.
/// inputs: types of the op's.
RowAxes entry_rows(const LoopAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
