#include "reel/tests/fuzz/shrinking/cut_by_hand.h"

#include "reel/core/ops.h"

namespace reel::fuzz {

CutByHand::CutByHand(const Instruction& scan, const Machine& machine) {
  const LoopForm& loop = scan.loop;
  if (!loop.is_cut_by_hand) return;
  steps_ = loop.truncate;
  const Program& program = machine.program();
  // In a reverse scan, each entry begins at its own end.
  const std::vector<int> entries =
      loop.reverse && loop.spatial >= 0 ? program.dims[loop.spatial].over : std::vector<int>{};
  for (int i = 0; i < loop.states; ++i) {
    const ValueType& type = program.values[scan.blocks[0].params[loop.xs + i]];
    std::vector<int> own;
    for (const int dim : type.dims)
      if (contains(entries, dim)) own.push_back(dim);
    if (!type.is_array) dims_.push_back(machine.dims(own));
  }
  dims_.push_back({});
}

State CutByHand::with_counters(State state) const {
  for (const Dims& dims : dims_) state.tensors.push_back(zeros(dims, i32));
  return state;
}

State CutByHand::without_counters(State state) const {
  state.tensors.resize(state.tensors.size() - dims_.size());
  return state;
}

Tensor CutByHand::truncates_at(const Tensor& counter) const {
  return counter > 0 && mod(counter, steps_) == 0;
}

State CutByHand::cut(const State& state) const {
  State seen = without_counters(state);
  for (std::size_t i = 0; steps_ && i < seen.tensors.size(); ++i)
    if (Tensor& leaf = seen.tensors[i]; is_float(leaf.dtype()))
      leaf = where(truncates_at(state.tensors[seen.tensors.size() + i]), stop_gradient(leaf), leaf);
  // A body that never runs is recorded for its types: its counter is then traced.
  if (steps_ && !state.tensors.back().is_traced() &&
      truncates_at(state.tensors.back()).item<bool>())
    for (TensorArray& array : seen.arrays)
      array = TensorArray::of_list(stop_gradient(array.list()));
  return seen;
}

State CutByHand::counted(State next, const State& before) const {
  for (std::size_t i = before.tensors.size() - dims_.size(); i < before.tensors.size(); ++i)
    next.tensors.push_back(before.tensors[i] + 1);
  return next;
}

}  // namespace reel::fuzz
