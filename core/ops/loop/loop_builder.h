// core/ops/loop/loop_builder.h — LoopBuilder, which adds the leaves of a loop one by one and
// keeps its attributes, its graphs and its operands in step.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/ops/loop/loop_views.h"

namespace reel {

/// Collects the leaves of a new loop. Operand: Tensor while recording, ValueId in a pass.
///
/// Leaves of each kind keep the order in which they are added; kinds may be added in any order.
/// Captures are added with the numbers of the graphs' inputs that stand for them.
template <class Operand>
class LoopBuilder {
 public:
  /// Begins with the attributes of a loop except its leaves and graphs.
  explicit LoopBuilder(const LoopAttrs& like) : attrs_(like) {
    attrs_.carries.clear();
    attrs_.slices.clear();
    attrs_.captures.clear();
    attrs_.stacks.clear();
    attrs_.sums.clear();
    attrs_.body_captures.clear();
    attrs_.cond_captures.clear();
  }

  /// Returns the other attributes, to be changed.
  LoopAttrs& attrs() { return attrs_; }

  /// Sets an operand; the presence of each must agree with attrs().
  void set_bound(Operand bound) { bound_ = {std::move(bound)}; }
  void set_lengths(Operand lengths) { lengths_ = {std::move(lengths)}; }
  void set_chunk(Operand chunk) { chunk_ = {std::move(chunk)}; }
  /// Copies the bound, lengths and chunk that another loop has.
  template <class T>
  void set_trip_operands(const LoopOperands<T>& other) {
    if (other.bound) set_bound(*other.bound);
    if (other.lengths) set_lengths(*other.lengths);
    if (other.chunk) set_chunk(*other.chunk);
  }

  /// Adds a carry. formal, next: the body's input and output. in_cond: the condition's input, if
  /// there is one.
  void add_carry(ValueId formal, ValueId next, Operand initial, LoopCarry carry,
                 ValueId in_cond = 0) {
    carries_.push_back({formal, std::move(initial)});
    carries_out_.push_back(next);
    carries_in_cond_.push_back(in_cond);
    attrs_.carries.push_back(std::move(carry));
  }
  void add_slice(ValueId formal, Operand slices, LoopSlice slice) {
    slices_.push_back({formal, std::move(slices)});
    attrs_.slices.push_back(slice);
  }
  void add_stack(ValueId term, LoopStack stack) {
    stacks_.push_back(term);
    attrs_.stacks.push_back(std::move(stack));
  }
  void add_sum(ValueId term, LoopSum sum) {
    sums_.push_back(term);
    attrs_.sums.push_back(sum);
  }
  /// Adds an operand that the graphs read. Returns its index, for the next two functions.
  std::size_t add_capture(Operand value, LoopCapture capture) {
    captures_.push_back(std::move(value));
    attrs_.captures.push_back(capture);
    return captures_.size() - 1;
  }
  /// Lets the body, or the condition, read capture `index` as its input `formal`.
  void read_in_body(std::size_t index, ValueId formal) {
    attrs_.body_captures.push_back(static_cast<int>(index));
    body_captures_.push_back(formal);
  }
  void read_in_cond(std::size_t index, ValueId formal) {
    attrs_.cond_captures.push_back(static_cast<int>(index));
    cond_captures_.push_back(formal);
  }

  std::size_t carry_count() const { return carries_.size(); }
  std::size_t slice_count() const { return slices_.size(); }
  std::size_t stack_count() const { return stacks_.size(); }
  std::size_t sum_count() const { return sums_.size(); }

  /// Sets the inputs and outputs of the body. position: its first input.
  void connect_body(Graph& body, ValueId position) const {
    body.inputs = {position};
    for (const Input& carry : carries_) body.inputs.push_back(carry.formal);
    for (const Input& slice : slices_) body.inputs.push_back(slice.formal);
    body.formal_count = body.inputs.size();
    body.inputs.insert(body.inputs.end(), body_captures_.begin(), body_captures_.end());
    body.outputs = carries_out_;
    body.outputs.insert(body.outputs.end(), stacks_.begin(), stacks_.end());
    body.outputs.insert(body.outputs.end(), sums_.begin(), sums_.end());
  }
  /// Sets the inputs of the condition. trips: its first input.
  void connect_cond(Graph& cond, ValueId trips) const {
    cond.inputs = {trips};
    cond.inputs.insert(cond.inputs.end(), carries_in_cond_.begin(), carries_in_cond_.end());
    cond.formal_count = cond.inputs.size();
    cond.inputs.insert(cond.inputs.end(), cond_captures_.begin(), cond_captures_.end());
  }
  /// Returns the operands of the op.
  std::vector<Operand> operands() const {
    std::vector<Operand> result;
    for (const auto* one : {&bound_, &lengths_, &chunk_})
      result.insert(result.end(), one->begin(), one->end());
    for (const auto* some : {&carries_, &slices_})
      for (const Input& input : *some) result.push_back(input.operand);
    result.insert(result.end(), captures_.begin(), captures_.end());
    return result;
  }

 private:
  struct Input {
    ValueId formal;
    Operand operand;
  };
  LoopAttrs attrs_;
  std::vector<Operand> bound_, lengths_, chunk_;  // none or one
  std::vector<Input> carries_, slices_;
  std::vector<Operand> captures_;
  std::vector<ValueId> carries_out_, carries_in_cond_, stacks_, sums_;
  std::vector<ValueId> body_captures_, cond_captures_;
};

}  // namespace reel
