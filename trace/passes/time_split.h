// trace/passes/time_split.h — TimeSplit, which records of a loop's body can leave it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/graph_builder.h"
#include "reel/core/ops/loop.h"
#include "reel/core/ops/product_table.h"
#include "reel/trace/passes/ended_values.h"
#include "reel/trace/passes/notes.h"
#include "reel/trace/passes/pack_weights.h"

namespace reel {

/// Where a value of the body can be had.
enum class Home : std::uint8_t {
  inside,  ///< only in the loop, step by step
  steps,   ///< outside, for all steps at once
  once,    ///< outside, the same in every step
};

/// What is decided about a loop, before anything is done about it.
///
/// Where entries end one by one, only what treats each entry for itself leaves the loop: what is
/// computed for the others in places where they have ended is padding then. A sum over entries
/// leaves it for a sum over all steps, in which padding counts as zero.
///
/// A gradient has the bits of keeping all if the same leaves its loop, whatever a rule has computed
/// again there (Again). What is computed again is then where a slice was: what would be made of
/// that before the loop is made behind it, of what the loop stacks; and what alone would leave,
/// because it is computed again, stays.
class TimeSplit {
 public:
  /// What may leave the loop.
  enum class Leaves : std::uint8_t {
    all,
    once,  ///< what depends on captures alone
  };
  /// time: the dim of the steps (time_of). inputs: types of the op's. renames: of the whole graph.
  /// packs: what pack_weights does afterwards.
  TimeSplit(const LoopAttrs& attrs, std::span<const TensorType> inputs, const Dim& time,
            const DimRenames& renames, Leaves leaves, Packs packs);

  /// The dim of the steps, if it is one that this can work with. why: what speaks against it.
  static std::optional<Dim> time_of(const LoopAttrs& attrs, std::span<const TensorType> inputs,
                                    std::string& why);

  /// The same of a loop whose steps may run in other loops: nobody asks whether it goes on, its
  /// entries run to the end or to lengths that are known, and some slices tell how many there are.
  static std::optional<Dim> divisible_time_of(const LoopAttrs& attrs,
                                              std::span<const TensorType> inputs);

  bool changes_anything() const;
  /// Had all been kept that a rule has computed again.
  bool would_change_anything() const;
  /// What leaves the loop, and of what would gain by it but stays, why.
  void write_notes(LoopNotes& notes) const;

  Home home(ValueId v) const { return home_[v]; }
  bool is_hoisted(std::size_t record) const { return is_hoisted_[record]; }  ///< before the loop
  bool is_sunk(std::size_t record) const { return is_sunk_[record]; }        ///< after it
  /// An output of the body, a stack or a sum, may be made outside. Ended entries have padding
  /// there, and of what joins the entry whose values they saw, only the loop knows which that is.
  bool can_make_outside(std::size_t output) const {
    if (ended_ && attrs_.collects_output(output)) return false;
    if (output >= attrs_.first_sum()) return true;
    const std::size_t j = output - attrs_.first_stack();
    return !attrs_.is_list(j) && !attrs_.is_spilled(j) &&
           (!ended_ || !attrs_.is_raw(j) || attrs_.is_unread(j));
  }
  /// Entries end one by one, and the value has a row for each, which no other entry has a part in.
  bool has_own_rows(ValueId v) const { return ended_ && ended_->rows()[v] >= 0; }
  /// What it makes of sums over steps is the sum of what it makes of each: of one result, linear
  /// without constants (its gradient reads nothing) in inputs that are others in every step, or a
  /// multiple of one by what no step changes.
  bool is_linear(const OpRecord& record) const;
  /// Of a linear op whose results are added up over steps: its inputs are added up instead. Of a
  /// sum over axes, where what it takes is made outside for that only.
  bool sums_come_first(const OpRecord& record) const;
  /// What ended entries see of a value that comes as a slice instead.
  Fill fill_of_hoisted(ValueId v) const { return ended_ ? *ended_->fill(v) : Fill::live; }

  /// The type of a value of the body outside, for one step or for all.
  TensorType outside(ValueId v, bool is_many) const;
  /// A part of the graph around the loop, recorded anew.
  template <class Fn>
  RecordedGraph record_part(const std::vector<TensorType>& types, Fn&& fn) const {
    return record_graph("part", types, fn, renames_);
  }
  /// A record of the body, applied in the graph that is being recorded. Products of all steps add
  /// up their terms in the order of a step: under some policies and rules they are done step by
  /// step.
  Tensors apply(const OpRecord& record, const Tensors& in, const std::vector<std::uint8_t>& is_many,
                bool is_summed) const;

 private:
  void hoist();
  std::vector<std::uint8_t> find_left_if_kept();
  void keep_cheap_inside();
  void sink(const std::vector<std::uint8_t>& is_left_if_kept);
  void keep_what_is_again();
  std::vector<std::uint8_t> find_needed(bool by_carries_only) const;
  std::vector<std::uint8_t> find_waiting() const;
  bool may_fail_behind_print(const OpRecord& record) const;
  bool can_leave(const OpRecord& record) const;
  bool keeps_rows(const OpRecord& record, bool if_kept = false) const;
  bool must_stay(const OpRecord& record) const;
  std::optional<Home> home_before(const OpRecord& record, bool if_kept = false) const;
  bool grows(const OpRecord& record) const;
  std::vector<std::uint8_t> find_only_summed() const;
  std::vector<std::uint8_t> find_added() const;
  std::vector<std::uint8_t> find_terms_inside() const;
  bool is_sum_over_entries(const OpRecord& record,
                           const std::vector<std::uint8_t>& is_only_summed) const;
  bool clashes_with_time(ValueId v) const;
  bool has_rule(const OpRecord& record, const std::vector<std::uint8_t>& is_many,
                bool is_summed = false) const;
  bool is_fast_inside(const OpRecord& record) const;
  SumOrder order_in_step(const OpRecord& record) const;
  bool is_warm_inside(const OpRecord& record) const;
  std::vector<std::uint8_t> find_terms() const;
  std::string why_inside(const OpRecord& record) const;

  const LoopAttrs& attrs_;
  const Graph& body_;
  Dim time_;
  const DimRenames& renames_;
  bool is_open_;  ///< a step may take any memory
  Packs packs_;
  Leaves asked_, leaves_;  ///< what may leave it if all its steps may be had at a time, and does
  bool leaves_if_kept_;    ///< something would go before it, had all been kept
  mutable DimEnv env_;     // remembers what it has resolved
  bool prints_;
  std::optional<EndedValues> ended_;                // where entries end one by one
  std::vector<Home> home_;                          // by value
  std::vector<std::uint8_t> is_needed_;             // by value: find_needed(false)
  std::vector<std::uint8_t> is_term_;               // by value: find_terms_inside()
  std::vector<std::uint8_t> is_hoisted_, is_sunk_;  // by record
};

}  // namespace reel
