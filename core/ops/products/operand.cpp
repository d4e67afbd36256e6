#include "reel/core/ops/products/operand.h"

#include <utility>

#include "reel/core/ops/reductions/reduce.h"

namespace reel {

std::vector<int> others(int rank, const std::vector<int>& contract, const std::vector<int>& batch) {
  std::vector<int> result;
  result.reserve(static_cast<std::size_t>(rank));
  for (int axis = 0; axis < rank; ++axis)
    if (!has(contract, axis) && !has(batch, axis)) result.push_back(axis);
  return result;
}

void sort_pairs(std::vector<int>& by, std::vector<int>& along) {
  for (std::size_t i = 1; i < by.size(); ++i)
    for (std::size_t j = i; j > 0 && by[j] < by[j - 1]; --j) {
      std::swap(by[j], by[j - 1]);
      std::swap(along[j], along[j - 1]);
    }
}

namespace {

AxisRun merge(const std::vector<int>& axes, const TensorType& type, const Steps& steps) {
  AxisRun run;
  for (int axis : axes) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t size = type.sizes()[i];
    if (size == 1) continue;
    if (run.size != 1 && run.step != size * steps[i]) run.is_whole = false;
    run = {run.size * size, steps[i], run.is_whole};
  }
  return run;
}

}  // namespace

Operand::Operand(const TensorType& tensor_type, const char* elements, std::vector<int> batch_axes,
                 std::vector<int> contract_axes)
    : type(tensor_type),
      data(elements),
      steps(steps_of(type)),
      batch(std::move(batch_axes)),
      free(others(type.rank(), contract_axes, batch)),
      contract(std::move(contract_axes)) {}

AxisRun Operand::rows() const { return merge(free, type, steps); }
AxisRun Operand::inner() const { return merge(contract, type, steps); }

void Operand::rearrange(const std::vector<int>& middle, const std::vector<int>& last) {
  StridedAxes axes;
  const Steps from = steps;
  std::int64_t step = type.numel();
  for (const std::vector<int>* group :
       {static_cast<const std::vector<int>*>(&batch), &middle, &last})
    for (int axis : *group) {
      const auto i = static_cast<std::size_t>(axis);
      step /= type.sizes()[i];
      steps[i] = step;
      axes.push_back({type.sizes()[i], step, from[i]});
    }
  if (!data) return;
  copy.reset(new char[static_cast<std::size_t>(type.bytes())]);
  copy_strided(size_of(type.dtype()), axes, copy.get(), data);
  data = copy.get();
}

MatrixSizes arrange(Operand& a, Operand& b, SumOrder order) {
  // An operand may be empty without an inner size of 0 if only the sizes are asked for.
  const bool is_empty = a.type.numel() == 0 || b.type.numel() == 0;
  if (a.contract.size() > 1 && !is_empty) {
    sort_pairs(a.contract, b.contract);
    if (!a.inner().is_whole || !b.inner().is_whole) sort_pairs(b.contract, a.contract);
  }
  if (!is_empty && !(a.rows().is_whole && a.inner().is_whole)) a.rearrange(a.free, a.contract);
  if (!is_empty && !(b.rows().is_whole && b.inner().is_whole)) b.rearrange(b.contract, b.free);
  const AxisRun rows = a.rows(), inner = a.inner(), columns = b.rows(), b_inner = b.inner();
  return {.m = rows.size,
          .n = columns.size,
          .k = inner.size,
          .a_row = rows.step,
          .a_step = inner.step,
          .b_row = b_inner.step,
          .b_step = columns.step,
          .c_row = columns.size,
          .order = order};
}

}  // namespace reel
