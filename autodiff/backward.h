// autodiff/backward.h — Backward, one walk over a list of records from its end.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "reel/autodiff/tape.h"
#include "reel/core/ops/term_sum.h"
#include "reel/core/vjp.h"

namespace reel {

/// Applies the op of a record once more for its vjp; `attrs` may ask to save more values.
///
/// Inside a body or branch, the op is applied around it, in the tape's own trace, if all inputs
/// come from there. A pass then merges the two applications: the loop runs once, with its effects.
/// If an input was made inside, the loop is applied inside, without its effects.
Tensors apply_again(Vjp& at, const Op& op, const Tensors& inputs, const AttrsRef& attrs);

/// Reverse mode (Griewank & Walther 2008, ch. 3): cotangents by value number, one vjp per record
/// that has any.
///
/// Contributions made inside a loop to a value from before it are added up per iteration first,
/// then over iterations, and then join the others: that is what *sum* outputs of a traced loop do.
/// Those to a value of the iteration before are added up first too, as a carry's cotangent is. A
/// branch counts as a loop of one iteration. So both modes give the same bits (docs/decisions/0007
/// says where not).
///
/// In a trace only a run tells whether a branch was taken, or a loop ran at all. A cotangent that
/// comes from there alone carries a boolean, `present`, on its way back: without it, zeros that
/// stand for no cotangent would meet infinite derivatives and become NaN (docs/decisions/0008).
class Backward {
 public:
  /// is_elsewhere: the walk is inside a body, branch or trace that the tape was opened outside of,
  /// or in an iteration of a scan with finished entries. Operands have other numbers or dims there.
  Backward(RecordingTape& tape, bool let_go, bool is_elsewhere);

  /// Only paths from these values matter.
  void want(const std::vector<ValueId>& sources);
  /// Cotangents of a source may be rows; the number is its own, or that of an identity of it.
  void take_rows(ValueId number, ValueId source);
  void accumulate(ValueId number, Tensor cotangent);
  /// Returns a copy of the tensor that the tape does not track, but the tapes around it do, if the
  /// tape is open and the walk is inside a body or branch. An open tape takes its own gradient for
  /// a constant. Returns tensors made inside, and all tensors of other walks, unchanged.
  Tensor constant_to_tape(const Tensor& tensor);
  void run();
  const Tensor& cotangent(ValueId number) {
    if (!presences_.empty()) settle(number);
    finish_sum(number);
    return cotangents_[number];
  }
  /// The rows that have come for a value, in the order in which they were read, as its cotangent,
  /// and their numbers; added to what is no rows, which has no numbers: an empty Tensor.
  Tensor rows(ValueId number, Tensor& cotangent) const;
  bool has_rows(ValueId number) const { return rows_.count(number); }
  /// Whether a run has it, where only that tells; else an empty Tensor.
  Tensor presence(ValueId number) const {
    const auto found = presences_.find(number);
    return found == presences_.end() ? Tensor() : found->second.present;
  }

 private:
  friend class TapeVjp;
  friend Tensors apply_again(Vjp& at, const Op& op, const Tensors& inputs, const AttrsRef& attrs);
  /// What outlives its place on the tape.
  struct MovedRecord {
    OpRecord record;
    std::vector<TapeOperand> operands;
    MovedRecord(const RecordingTape::Storage& storage, const OpRecord& record);
    MovedRecord(MovedRecord&&) = default;
    MovedRecord& operator=(MovedRecord&&) = delete;  // would hold on to what it had
    ~MovedRecord();
  };
  struct Loop {
    ValueId values_before, values_before_iteration;
    std::unordered_map<ValueId, CountedTermSum> iteration;  ///< of values from before the loop
    std::unordered_map<ValueId, TermSum> total;             ///< of the same, over iterations
    std::unordered_map<ValueId, CountedTermSum> carried;    ///< of values from the iteration before
    std::vector<MovedRecord> moved;                         ///< out of the loop
    std::int64_t iterations = 0;                            ///< that this walk has left
  };
  /// When a run has a cotangent, and whether it is zeros where the run has none: what a vjp made of
  /// such zeros may be NaN.
  struct Presence {
    Tensor present;
    bool is_exact;
  };
  struct Rows {
    Tensor values, numbers;
  };
  bool is_needed(std::span<const TapeOperand> inputs) const;
  void visit(const OpRecord& record, const TapeOperand* operands);
  void apply_vjp(const OpRecord& record, const TapeOperand* operands);
  void apply_vjp_elsewhere(const OpRecord& record, const TapeOperand* operands);
  ThreadMode mode_around() const;
  std::optional<Tensors> apply_around(const Op& op, const Tensors& inputs, const AttrsRef& attrs);
  /// Returns a loop's attributes without its effects; those of other ops unchanged.
  static AttrsRef without_effects(const Op& op, const AttrsRef& attrs);
  void visit_in_place(std::size_t record);
  void visit_moved(const OpRecord& record, std::size_t loops_to_leave);
  void visit_mark(const OpRecord& mark);
  /// next: the number of the iteration in front of it.
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
  bool has_other_dims_ = false;  ///< elsewhere: operands of the visited record have others there
  struct Constant {
    Tensor constant, original;
  };
  std::unordered_map<std::uint64_t, Constant> constants_;  ///< by block id of the original
  Tensors cotangents_;
  std::vector<std::uint8_t>
      added_;  ///< terms that cotangents_ has got in this block, but the first
  std::unordered_map<ValueId, TermSum> blocks_;  ///< what cotangents_ lacks: the blocks before
  std::vector<std::uint8_t> is_needed_, is_source_;
  std::unordered_map<ValueId, ValueId> tables_;          ///< what may be rows: of which source
  std::unordered_map<ValueId, std::vector<Rows>> rows_;  ///< by source: the last ones read first
  std::vector<Loop> loops_;
  std::unordered_map<ValueId, Presence> presences_;
  std::optional<Presence> arriving_;  ///< of all cotangents that the visited record has
};

}  // namespace reel
