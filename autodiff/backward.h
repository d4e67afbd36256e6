// autodiff/backward.h — Backward: one reverse walk over the records of a tape.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "reel/autodiff/tape.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops/list/term_sum.h"

namespace reel {

/// Applies the op of a record again for its vjp. `attrs` may save more values.
///
/// Inside a body or branch, the op is applied around it, in the tape's own trace, if all inputs
/// come from there. A pass then merges the two applications: the loop runs once, with its effects.
/// If an input was made inside, the loop is applied inside, without its effects.
Tensors apply_again(Vjp& at, const Op& op, const Tensors& inputs, const AttrsRef& attrs);

/// Reverse mode (Griewank & Walther 2008, ch. 3): cotangents by value number, one vjp per record
/// that has any.
///
/// Contributions made inside a loop to a value from before it are added up per iteration, then over
/// iterations. Then they join the others, as the *sum* outputs of a traced loop do. Contributions
/// to a value of the previous iteration are added up first too, as a carry's cotangent is. A branch
/// counts as a loop of one iteration. Therefore both modes give the same bits (docs/decisions/0007
/// lists the exceptions).
///
/// In a trace, only a run tells whether a branch was taken, or a loop ran at all. A cotangent that
/// comes only from there carries a boolean, `present`. Without it, zeros that stand for no
/// cotangent would meet infinite derivatives and become NaN (docs/decisions/0008).
class Backward {
 public:
  /// let_go: if true, each record is released when the walk has passed it.
  /// is_elsewhere: true if the walk is inside a body, branch or trace that is inside the tape's
  /// own, or in an iteration with finished entries. Operands have other numbers or dims there.
  Backward(RecordingTape& tape, bool let_go, bool is_elsewhere);

  /// Restricts the walk to paths from these values.
  void want(const std::vector<ValueId>& sources);
  /// Lets the cotangent of a source be rows. number: of the source, or of an identity of it.
  void take_rows(ValueId number, ValueId source);
  /// Adds a contribution to the cotangent of a value.
  void accumulate(ValueId number, Tensor cotangent);
  /// If the tape is open and the walk is inside a body or branch, returns a copy that the tape does
  /// not track, but outer tapes do: an open tape takes its own gradient for a constant. Returns
  /// tensors made inside, and all tensors of other walks, unchanged.
  Tensor constant_to_tape(const Tensor& tensor);
  /// Walks the whole tape.
  void run();
  /// Returns the cotangent of a value; undefined if there is none.
  const Tensor& cotangent(ValueId number) {
    if (!presences_.empty()) settle(number);
    finish_sum(number);
    return cotangents_[number];
  }
  /// Returns the rows that arrived for a value, concatenated in the order in which they were read.
  /// cotangent() does not have them.
  TableRows rows(ValueId number) const;
  /// Returns a boolean that says whether a run has the cotangent; undefined if that is certain.
  Tensor presence(ValueId number) const {
    const auto found = presences_.find(number);
    return found == presences_.end() ? Tensor() : found->second.present;
  }

 private:
  friend class TapeVjp;
  friend Tensors apply_again(Vjp& at, const Op& op, const Tensors& inputs, const AttrsRef& attrs);
  /// A record with its operands, kept longer than its place on the tape.
  struct MovedRecord {
    OpRecord record;
    std::vector<TapeOperand> operands;
    MovedRecord(const RecordingTape::Storage& storage, const OpRecord& record);
    MovedRecord(MovedRecord&&) = default;
    MovedRecord& operator=(MovedRecord&&) = delete;  // would leak the old operands
    ~MovedRecord();
  };
  struct Loop {
    ValueId values_before, values_before_iteration;
    std::unordered_map<ValueId, CountedTermSum> iteration;  ///< by values from before the loop
    std::unordered_map<ValueId, TermSum> total;             ///< the same, summed over iterations
    std::unordered_map<ValueId, CountedTermSum> carried;  ///< by values from the previous iteration
    std::vector<MovedRecord> moved;                       ///< records that belong before the loop
    std::int64_t iterations = 0;                          ///< iterations that this walk has left
  };
  /// Says if a run has a cotangent. is_exact: without one, the value is zeros; otherwise a vjp of
  /// such zeros may have made NaN of it.
  struct Presence {
    Tensor present;
    bool is_exact;
  };
  bool is_needed(std::span<const TapeOperand> inputs) const;
  void visit(const OpRecord& record, const TapeOperand* operands);
  void apply_vjp(const OpRecord& record, const TapeOperand* operands);
  void apply_vjp_elsewhere(const OpRecord& record, const TapeOperand* operands);
  ThreadMode mode_around() const;
  std::optional<Tensors> apply_around(const Op& op, const Tensors& inputs, const AttrsRef& attrs);
  /// Returns a loop's attributes without its effects; other attributes unchanged.
  static AttrsRef without_effects(const Op& op, const AttrsRef& attrs);
  void visit_in_place(std::size_t record);
  void visit_moved(const OpRecord& record, std::size_t loops_to_leave);
  void visit_mark(const OpRecord& mark);
  /// Ends the reverse of an iteration. next: the number of the iteration that the walk enters.
  void leave_iteration(Loop& loop, std::int64_t next);
  void accumulate_in_loop(ValueId number, Tensor cotangent);
  void accumulate_if(ValueId number, Tensor cotangent, Presence presence);
  void settle(ValueId number);
  void find_arriving(std::span<const TapeOperand> outputs);
  ValueId place_of(ValueId number) const;
  /// Adds a term to cotangents_, as CountedTermSum does.
  void add_into(ValueId number, Tensor&& term);
  void begin_block(ValueId number, Tensor&& term);
  /// Adds to cotangents_ the blocks of terms before the last one.
  void finish_sum(ValueId number) {
    if (!blocks_.empty()) add_blocks(number);
  }
  void add_blocks(ValueId number);

  RecordingTape& tape_;
  bool let_go_, is_elsewhere_;
  bool has_other_dims_ = false;  ///< elsewhere: the visited record's operands have other dims there
  struct Constant {
    Tensor constant, original;
  };
  std::unordered_map<std::uint64_t, Constant> constants_;  ///< by block id of the original
  Tensors cotangents_;
  std::vector<std::uint8_t> added_;  ///< terms of this block in cotangents_, without the first
  std::unordered_map<ValueId, TermSum> blocks_;  ///< the earlier blocks, which cotangents_ lacks
  std::vector<std::uint8_t> is_needed_, is_source_;
  std::unordered_map<ValueId, ValueId> tables_;  ///< values that may be rows -> their source
  std::unordered_map<ValueId, std::vector<TableRows>>
      rows_;  ///< by source: rows read last come first
  std::vector<Loop> loops_;
  std::unordered_map<ValueId, Presence> presences_;
  std::optional<Presence> arriving_;  ///< of all cotangents of the visited record
};

}  // namespace reel
