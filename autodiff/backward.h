// autodiff/backward.h — Backward, one walk over a list of records from its end.
#pragma once

#include <unordered_map>
#include <vector>

#include "reel/autodiff/tape.h"

namespace reel {

/// Reverse mode (Griewank & Walther 2008, ch. 3): cotangents by value number, one vjp per record
/// that has any.
///
/// Contributions made inside a loop to a value from before it are added up per iteration first,
/// then over iterations, and then join the others: that is what *sum* outputs of a traced loop do.
/// Those to a value of the iteration before are added up first too, as a carry's cotangent is. A
/// branch counts as a loop of one iteration. So both modes give the same bits (docs/decisions/0007
/// says where not).
class Backward {
 public:
  Backward(RecordingTape& tape, bool let_go);

  /// Only paths from these values matter.
  void want(const std::vector<ValueId>& sources);
  void accumulate(ValueId number, Tensor cotangent);
  void run();
  const Tensor& cotangent(ValueId number) const { return cotangents_[number]; }

 private:
  friend class TapeVjp;
  struct Loop {
    ValueId values_before, values_before_iteration;
    std::unordered_map<ValueId, Tensor> iteration, total;  ///< of values from before the loop
    std::unordered_map<ValueId, Tensor> carried;           ///< of values from the iteration before
  };
  bool is_needed(const OpRecord& record) const;
  void visit(const OpRecord& record);
  void visit_mark(const OpRecord& mark);
  void accumulate_in_loop(ValueId number, Tensor cotangent);
  static void add_into(Tensor& sum, Tensor&& term);

  RecordingTape& tape_;
  bool let_go_;
  Tensors cotangents_;
  std::vector<std::uint8_t> is_needed_, is_source_;
  std::vector<Loop> loops_;
};

}  // namespace reel
