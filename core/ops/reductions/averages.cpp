// mean and variance, and counts of their elements.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_facts.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {

// ---- Counting -----------------------------------------------------------------------------------

namespace {

/// Counts the positions of all rows of vmap at once. Dims whose lengths run over the rows have a
/// size for each row; without one, all rows have the count in common.
Tensors axes_size_of_rows(const IterationBatch& at) {
  if (!at.is_vmap) return {};
  const Tensor& x = at.in[0];
  Tensor count = scalar(1, i64);
  for (const int axis : behind_time(at.attr<ReduceAttrs>().axes)) {
    const Dim& dim = dim_at(x.type(), axis);
    if (!runs_over(dim, at.time))
      count = count * reel::bind(at.op, {x}, reduce_attrs({axis}));
    else if (dim.length_dims() == Dims{at.time})
      count = count * cast(dim.lengths(), i64);
    else
      return {};
  }
  return {count};
}

}  // namespace

/// Returns the number of positions along the axes of x, for traces, which do not know it. Reads
/// only the shape of x.
const Op axes_size_op{
    .name = "axes_size",
    .type =
        [](TypeArgs& a) {
          check_axes(a.in[0], a.attr<ReduceAttrs>().axes);
          a.out.push_back(TensorType(i64));
        },
    .kernel =
        [](KernelArgs& args) {
          std::int64_t count = 1;
          for (int axis : args.attr<ReduceAttrs>().axes)
            count *= args.input(0).type().sizes()[static_cast<std::size_t>(axis)];
          *args.make().data<std::int64_t>() = count;
        },
    .no_vjp = "sizes are integers",
    .samples = [] { return reduction_samples(f32, -2, 2, true); },
    .iteration_batching = axes_size_of_rows,
    .fails = fails_without_memory,
    .padding = Padding::unread,
};

namespace {

/// Returns the product of the sizes if they are known, else -1. If entries of a loop finish one by
/// one, ragged dims of its body have the length of a running entry. Ops see that length, the type
/// of x does not.
std::int64_t known_size(const TensorType& x, const std::vector<int>& axes) {
  std::int64_t result = 1;
  for (int axis : axes) {
    const Dim& dim = x.dims()[static_cast<std::size_t>(axis)];
    const std::int64_t size = x.sizes()[static_cast<std::size_t>(axis)];
    if (size < 0 || dim.is_ragged()) return -1;
    result *= size;
  }
  return result;
}

/// Returns the number of summed elements that are no padding: i64, over dims of the result.
Tensor valid_count(const Tensor& x, const std::vector<int>& axes) {
  const TensorType& type = x.type();
  // Relevant are the masked dims among the axes, and those with a length dim among them.
  Dims masked, involved;
  for (int i = 0; i < type.rank(); ++i) {
    if (!is_masked(type, i)) continue;
    const Dim& dim = type.dims()[static_cast<std::size_t>(i)];
    Dims all = dim.length_dims();
    all.push_back(dim);
    if (std::none_of(all.begin(), all.end(),
                     [&](const Dim& of) { return has(axes, find(type.dims(), of)); }))
      continue;
    masked.push_back(dim);
    for (const Dim& of : all)
      if (!contains(involved, of)) involved.push_back(of);
  }
  std::vector<Axis> summed;
  std::vector<int> rest;
  for (int axis : axes) {
    const Dim& dim = type.dims()[static_cast<std::size_t>(axis)];
    if (!contains(involved, dim))
      rest.push_back(axis);
    else if (masked.size() != 1 || dim != masked[0])
      summed.push_back(dim);
  }
  Tensor count;
  if (masked.size() > 1)
    count = sum(ones(involved, i64), Axes(std::move(summed)));  // masks padding
  else if (has(axes, find(type.dims(), masked[0])))
    count = sum(cast(masked[0].lengths(), i64), Axes(std::move(summed)));
  else
    count = sum(cast(mask(masked[0]), i64), Axes(std::move(summed)));
  const std::int64_t size = known_size(type, rest);
  if (size == 1) return count;
  return size >= 0 ? count * size : count * bind(axes_size_op, {x}, reduce_attrs(rest));
}

Tensor mean_over(const Tensor& x, const std::vector<int>& axes) {
  check_float("mean", x, "cast it, as in mean(cast(x, f32))");
  const Tensor total = bind(sum_op, {without_padding(x, axes, 0)}, reduce_attrs(axes));
  const bool is_masked = reduces_padding(x.type(), axes);
  const std::int64_t size = is_masked ? -1 : known_size(x.type(), axes);
  if (size >= 0) return total / static_cast<double>(std::max<std::int64_t>(size, 1));
  const Tensor count =
      is_masked ? valid_count(x, axes) : bind(axes_size_op, {x}, reduce_attrs(axes));
  return total / cast(maximum(count, 1), x.dtype());
}

/// Masks x first: values in padding would reach their own gradient.
Tensor variance_over(const Tensor& x, const std::vector<int>& axes) {
  check_float("variance", x, "cast it, as in variance(cast(x, f32))");
  const Tensor clean = apart_from(x, axes, without_padding(x, axes, 0.));
  return mean_over(square(clean - broadcastable(mean_over(clean, axes), axes, x.type())), axes);
}

}  // namespace

Tensor mean(const Tensor& x, const Axes& axes, Keep keep) {
  return over("mean", x, axes, keep, [&](const auto& at) { return mean_over(x, at); });
}
Tensor mean(const Tensor& x) { return mean_over(x, all_positions("mean", x)); }
Tensor variance(const Tensor& x, const Axes& axes, Keep keep) {
  return over("variance", x, axes, keep, [&](const auto& at) { return variance_over(x, at); });
}
Tensor variance(const Tensor& x) { return variance_over(x, all_positions("variance", x)); }

}  // namespace reel
