#include "reel/tests/fuzz/machine.h"

#include "reel/core/ops.h"
#include "reel/core/ops/shape/sliced_dims.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/transforms/branch_cost.h"
#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/relations/plain_form.h"
#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {

Machine::Machine(const Program& program, const Arguments& outside)
    : program_(program), outside_(outside), slots_(program.values.size()), dims_(outside.dims) {}

Tensors Machine::run(const Tensors& arguments) {
  const TakenRowsScope rule(program_.packs_taken_rows() ? TakenRowsRule::always
                                                        : TakenRowsRule::by_cost);
  std::size_t next = 0;
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const int value = program_.main.params[i];
    if (program_.inputs[i].is_captured) {
      slots_[value] = batched(outside_.all[i]);
      continue;
    }
    const Tensor& argument = arguments[next++];
    slots_[value] = batched(argument);
    // A dim that comes with arguments is another Dim in every call.
    for (const int dim : is_plain() ? std::vector<int>{} : program_.values[value].dims)
      if (program_.dims[dim].comes_with_arguments() || program_.dims[dim].is_read)
        dims_[dim] = argument.dim(program_.dims[dim].name);
  }
  run(program_.main);
  Tensors results;
  for (const int value : program_.main.results) results.push_back(batched(slots_[value].tensor));
  return results;
}

void Machine::found(const std::vector<SlicedDim>& slices, const std::vector<int>& values) {
  for (const SlicedDim& sliced : slices)
    for (const int value : values) {
      if (!contains(program_.values[value].dims, sliced.slice)) continue;
      const Dims& all = slots_[value].tensor.dims();
      const int axis = find_axis(all, dims_[sliced.whole]);
      if (axis >= 0) dims_[sliced.slice] = all[static_cast<std::size_t>(axis)];
      break;
    }
}

void Machine::run(const Block& block) {
  for (const int dim : block.makes)
    dims_[dim] = Dim(program_.dims[dim].name, program_.dims[dim].size);
  for (const Instruction& instruction : block.body) {
    if (is_plain())
      run_plainly(instruction, *this);
    else
      instruction.rule->run(instruction, *this);
    if (!watches_) continue;
    const ModeScope aside({});  // the ops of this test must not count as ops of a scan's body
    for (const int value : instruction.outputs)
      // Traced values belong to a body that never runs; it is recorded for its types.
      if (!program_.values[value].is_array && !slots_[value].tensor.is_traced() &&
          !are_finite({slots_[value].tensor}))
        met_others_ = true;
  }
}

bool Machine::stays_finite(const Tensors& arguments) {
  watches_ = true;
  run(arguments);
  return !met_others_;
}

Dims Machine::dims(const std::vector<int>& list) const {
  Dims result;
  for (const int dim : list)
    result.push_back(program_.dims[dim].is_named() ? dims_[dim] : Dim(program_.dims[dim].size));
  return result;
}

Tensor Machine::batched(const Tensor& x) const {
  return outside_.batch ? expand(x, *outside_.batch) : x;
}

State Machine::initial(const std::vector<int>& values) const {
  State state = gather(values);
  for (Tensor& leaf : state.tensors) leaf = batched(leaf);
  return state;
}

Dims Machine::cond_dims(const std::vector<int>& list) const {
  Dims result = dims(list);
  if (outside_.batch) result.insert(result.begin(), *outside_.batch);
  return result;
}

State Machine::gather(const std::vector<int>& values) const {
  State state;
  for (const int value : values) {
    if (program_.values[value].is_array)
      state.arrays.push_back(slots_[value].array);
    else
      state.tensors.push_back(slots_[value].tensor);
  }
  return state;
}

void Machine::assign(const std::vector<int>& values, const State& state) {
  std::size_t tensors = 0, arrays = 0;
  for (const int value : values) {
    if (program_.values[value].is_array)
      slots_[value] = state.arrays[arrays++];
    else
      slots_[value] = state.tensors[tensors++];
  }
}

Tensors passed_arguments(const Program& program, const Arguments& arguments) {
  Tensors passed;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    if (!program.inputs[i].is_captured) passed.push_back(arguments.all[i]);
  return passed;
}

}  // namespace reel::fuzz
