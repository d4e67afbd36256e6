// trace/passes/analysis/row_axes.h — RowAxes, an analysis of where rows are in a graph's values.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reel/core/op/axes.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

class FinishedValues;  // trace/passes/analysis/finished_values.h

/// Tracks one dim, the dim of the rows, through the values of a graph. As long as ops treat each
/// row on its own, row r of a value depends only on row r of inputs with rows, and on inputs
/// without.
class RowAxes {
 public:
  static constexpr int kNone = -1;    ///< no rows: the same for all rows
  static constexpr int kMixed = -2;   ///< several rows contribute to it, or its op is unknown
  static constexpr int kSummed = -3;  ///< a sum over all rows of values that each row has

  /// How to treat a value that several rows contribute to and that has the (named) dim itself.
  enum class Joint : std::uint8_t {
    mixed,      ///< as kMixed, and so every value computed from it
    rows,       ///< as having rows of its own; made_jointly() tells them apart
    any_order,  ///< as kMixed if it depends on the order of the rows. A sum over all rows counts as
                ///< kNone, except in a loop in which finished rows contribute to it: these read the
                ///< first running row. Equal elements count as having rows. Loops are followed
  };
  /// rows: the dim as the graph names it.
  RowAxes(const Graph& graph, const Dim& rows, Joint joint = Joint::mixed);

  /// Declares that input v has rows at `axis`, or is of a kind named above. Must be called before
  /// follow().
  void seed(ValueId v, int axis) { axes_[v] = axis; }
  /// Declares a dim with lengths over the rows that finished entries read unchanged: values with it
  /// count as kMixed. Must be called before follow().
  void keep_lengths(const Dim& dim) { kept_.push_back(dim); }
  void follow();

  /// Returns the axis of the value's rows, or kNone, kMixed or kSummed. Requires follow().
  int operator[](ValueId v) const { return axes_[v]; }
  /// Returns true if a row of the value depends on several rows of the op's operands. Only with
  /// Joint::rows.
  bool made_jointly(ValueId v) const { return is_joint_[v]; }
  /// Returns true if moreover the value's own op mixes no rows: it reads a row, and values without
  /// rows to which several rows contributed.
  bool made_of_one_row(ValueId v) const { return is_of_one_row_[v]; }
  /// Returns true if each row of the record's first result draws its own numbers.
  bool draws(const OpRecord& record) const;
  /// Returns the dim of the rows as the graph names it.
  const Dim& dim() const { return rows_; }
  bool has_rows(const TensorType& type) const { return contains(type.dims(), rows_); }
  /// Returns true if the type has a dim of keep_lengths().
  bool has_kept_lengths(const TensorType& type) const;
  /// Returns the first op that mixes rows, or may; null if there is none.
  const Op* first_mixing() const { return first_mixing_; }

 private:
  void follow_records();
  void find_joint_rows(const OpRecord& record);
  int axis_beside_sums(const OpRecord& record, std::size_t output);
  const Op* summing_op(std::span<const ValueId> in) const;
  const Op* drawing_op(const OpRecord& record) const;
  int first_axis(const OpRecord& record) const;
  bool draws_at(const OpRecord& record, int axis) const;
  bool takes_equal_rows(const OpRecord& record, const AxisFactors& factors, int factor) const;
  int axis_made(const OpRecord& record);
  using AxesOfOutputs = boost::container::small_vector<int, 4>;
  AxesOfOutputs axes_of(const OpRecord& record) const;
  void follow_fused(const OpRecord& record);
  void follow_loop(const OpRecord& record);
  int in_any_order(const OpRecord& record, int axis) const;
  bool names_mixed_dim(const OpRecord& record) const;
  void note_mixed_dims(const OpRecord& record);
  const TensorType& type(ValueId v) const { return graph_.types[v]; }

  const Graph& graph_;
  Dim rows_;
  Joint joint_;
  std::vector<int> axes_;               // by value
  std::vector<std::uint8_t> is_joint_;  // by value: has rows, but several rows contribute to each
  std::vector<std::uint8_t> is_of_one_row_;  // by value: joint, though its op mixes no rows
  std::vector<std::uint8_t> is_uniform_;     // by value: all elements are one number
  std::vector<const Op*> drawn_;             // by value without rows: the op that drew it
  Dims kept_;                                // see keep_lengths()
  bool draws_have_rows_ = false;             // the first axis of draws counts rows if it is as long
  Dims mixed_dims_;  // for rows in any order: dims with sizes or lengths that depend on it
  // For rows in any order: true in the body of a loop with rows that finish one by one, and in
  // loops inside of it.
  bool has_finished_ = false;
  const FinishedValues* finished_ = nullptr;  // of the finished rows of this body; null: unknown
  const Op* first_mixing_ = nullptr;
};

/// Returns the dim that counts the rows of a loop's state: the dim of its entries, otherwise the
/// first dim of the first carry that has dims. Returns nothing if no carry has dims.
///
/// carries: their types, around the loop or in its body.
std::optional<Dim> dim_of_rows(const LoopAttrs& attrs, std::span<const TensorType> carries);

/// Returns true if some dim of the type has a length for each element of `dim`. Rows then differ in
/// shape.
bool has_lengths_over(const TensorType& type, const Dim& dim);
/// Returns true if some dim of the type has a length for each element of `dim` and of a dim that
/// the type lacks. Its axis counts as full, so it is as long as the longest row that is there: rows
/// apart from others have fewer elements.
bool has_lengths_of_absent(const TensorType& type, const Dim& dim);

/// Returns the dim of a loop's entries as the types of its inputs name it. The attributes may name
/// it as the traced function does. Requires entries that finish one by one.
Dim entry_dim(const LoopAttrs& attrs, std::span<const TensorType> inputs);

/// Analyses the body of a loop; rows are entries, which finish one by one along one dim. Values to
/// which several entries contribute have rows of their own (Joint::rows). Ops on them can leave the
/// loop just as ops on slices can.
///
/// inputs: types of the op's inputs.
RowAxes entry_rows(const LoopAttrs& attrs, std::span<const TensorType> inputs);

}  // namespace reel
