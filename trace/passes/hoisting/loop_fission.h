// trace/passes/hoisting/loop_fission.h — LoopFission, a plan of which records leave a loop's body.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/graph/graph_builder.h"
#include "reel/core/ops/kernels/product_table.h"
#include "reel/core/ops/loop/loop.h"
#include "reel/trace/passes/analysis/finished_values.h"
#include "reel/trace/passes/hoisting/pack_weights.h"
#include "reel/trace/passes/support/remarks.h"

namespace reel {

/// Where a value of the body is available.
enum class Placement : std::uint8_t {
  in_loop,    ///< only in the loop, one iteration at a time
  batched,    ///< outside, for all time steps at once
  invariant,  ///< outside, one value for all iterations
};

/// Decides which records of a loop's body are hoisted or sunk; changes nothing itself.
///
/// If entries finish one by one, only records that treat each entry on its own leave the loop.
/// Outside, their values for finished entries are padding. A sum over entries leaves if it only
/// feeds a sum over time steps, in which padding counts as zero.
///
/// Under memory policies and rules, a gradient recomputes values (Recompute) that it would
/// otherwise slice from residuals. Its bits must not depend on the policy, so the same records must
/// leave its loop. A record that would be hoisted because it reads these slices is sunk instead,
/// and reads stacks of the loop. A record that could leave only because it is recomputed stays.
///
/// Borrows its constructor's `attrs` and `renames`, which must outlive it.
class LoopFission {
 public:
  /// Selects the records that may leave the loop.
  enum class Leaves : std::uint8_t {
    all,
    once,  ///< only records that depend on captures alone
  };
  /// time: the loop's dim (loop_time_of).   inputs: types of the op's inputs.
  /// renames: of the whole graph.
  /// packs: the matrices that pack_weights will pack later in the pipeline.
  LoopFission(const LoopAttrs& attrs, std::span<const TensorType> inputs, const Dim& time,
              const DimChanges& renames, Leaves leaves, Packs packs);

  /// Returns the dim of the loop's time steps.
  const Dim& time() const { return time_; }
  bool changes_anything() const;
  /// Returns changes_anything(), or whether it would hold if all recomputed values were residuals.
  bool would_change_anything() const;
  /// Adds remarks: which records leave the loop, and why others that would gain by leaving stay.
  void write_remarks(LoopRemarks& remarks) const;

  Placement placement(ValueId v) const { return placement_[v]; }
  bool is_hoisted(std::size_t record) const { return is_hoisted_[record]; }  ///< before the loop
  bool is_sunk(std::size_t record) const { return is_sunk_[record]; }        ///< behind the loop
  /// Return true if a stack or a sum can be made outside. Outside, finished entries have padding. A
  /// leaf that adds_finished entries must stay, as only the loop knows which running entry they
  /// read.
  bool can_make_outside(const LoopStack& stack) const {
    return !stack.is_list && !stack.is_in_file() &&
           (!finished_ || (!stack.adds_finished && (!stack.is_raw() || stack.finished_unread)));
  }
  bool can_make_outside(const LoopSum& sum) const { return !(finished_ && sum.adds_finished); }
  /// Returns true if entries finish one by one and the value has a row for each, to which no other
  /// entry contributes.
  bool has_own_rows(ValueId v) const { return finished_ && finished_->rows()[v] >= 0; }
  /// Returns true if the record, applied to sums over iterations, gives the sum of its results.
  /// Requires one result. Either it is linear without constants in operands that all vary (its
  /// gradient reads nothing), or it multiplies one such operand by a loop-invariant one, or
  /// replaces elements of one by zeros as a loop-invariant mask says.
  bool is_linear(const OpRecord& record) const;
  /// Returns true for a linear record if, to sum its results over time steps, its operands are
  /// summed instead. A sum over axes qualifies only if its operand is made outside, by a linear
  /// record or one that gains by leaving.
  bool sums_come_first(const OpRecord& record) const;
  /// Returns the record with this first output if it leaves the loop; otherwise null.
  const OpRecord* leaving_maker(ValueId v) const;
  /// Returns the fill of a hoisted value, which the loop then reads as a slice or capture. Requires
  /// that the record is hoisted.
  FinishedFill fill_of_hoisted(ValueId v) const {
    return finished_ ? *finished_->fill(v) : FinishedFill::running;
  }

  /// Returns the type of a body value outside the loop, for one iteration or for all time steps.
  TensorType outside(ValueId v, bool is_many) const;
  /// Records a part of the graph around the loop.
  template <class Fn>
  RecordedGraph record_part(const std::vector<TensorType>& types, Fn&& fn) const {
    return record_graph("part", types, fn, renames_);
  }
  /// Applies a record of the body in the graph that is being recorded. Products over all time steps
  /// keep the summation order of an iteration, as some policies and rules compute them one
  /// iteration at a time.
  Tensors apply(const OpRecord& record, const Tensors& in, const std::vector<std::uint8_t>& is_many,
                bool is_summed) const;

 private:
  void hoist();
  std::vector<std::uint8_t> find_left_if_kept();
  void keep_cheap_inside();
  void keep_grown_inside();
  bool grows_in_step(const OpRecord& record, const std::vector<std::uint8_t>& is_grown) const;
  void sink(const std::vector<std::uint8_t>& is_left_if_kept);
  void keep_what_is_again();
  std::vector<std::uint8_t> find_outputs(bool outside) const;
  std::vector<std::uint8_t> find_needed(bool by_carries_only) const;
  std::vector<std::uint8_t> find_waiting() const;
  bool may_fail_behind_print(const OpRecord& record) const;
  bool can_leave(const OpRecord& record) const;
  bool keeps_rows(const OpRecord& record, bool if_kept = false) const;
  bool must_stay(const OpRecord& record) const;
  std::optional<Placement> home_before(const OpRecord& record, bool if_kept = false) const;
  bool grows(const OpRecord& record) const;
  std::vector<std::uint8_t> find_only_summed() const;
  std::vector<std::uint8_t> find_added() const;
  bool is_zero(ValueId v) const;
  std::vector<std::uint8_t> find_terms_inside() const;
  bool is_sum_over_entries(const OpRecord& record,
                           const std::vector<std::uint8_t>& is_only_summed) const;
  bool clashes_with_time(ValueId v) const;
  bool has_rule(const OpRecord& record, const std::vector<std::uint8_t>& is_many,
                bool is_summed = false) const;
  bool is_light(const OpRecord& record) const;
  bool is_fast_inside(const OpRecord& record) const;
  SumOrder order_in_step(const OpRecord& record) const;
  bool is_warm_inside(const OpRecord& record) const;
  std::vector<std::uint8_t> find_terms() const;
  bool stays_as_recurrence() const;
  std::string why_inside(const OpRecord& record) const;

  const LoopAttrs& attrs_;
  const Graph& body_;
  Dim time_;
  const DimChanges& renames_;
  bool is_open_;  ///< an iteration may need any amount of memory
  Packs packs_;
  Leaves asked_, leaves_;  ///< the caller's choice; the part of it that memory allows
  bool leaves_if_kept_;    ///< something would be hoisted if all recomputed values were kept
  mutable DimEnv env_;     // caches resolved dims
  bool prints_;
  std::optional<FinishedValues> finished_;          // if entries finish one by one
  std::vector<Placement> placement_;                // by value
  std::vector<std::uint8_t> is_needed_;             // by value: find_needed(false)
  std::vector<std::uint8_t> is_term_;               // by value: find_terms_inside()
  std::vector<std::uint8_t> is_hoisted_, is_sunk_;  // by record
  std::vector<std::size_t> makers_;  // by value: the record with this first output, or kNone
  static constexpr std::size_t kNone = ~std::size_t{0};
};

}  // namespace reel
