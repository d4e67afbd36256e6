#include "reel/core/ops/shape/iteration_batching.h"

#include <algorithm>

#include "reel/core/functions/shape.h"
#include "reel/core/op/bind.h"

namespace reel {

Dims IterationBatch::with_time(const Dims& step) const {
  Dims dims{time};
  dims.insert(dims.end(), step.begin(), step.end());
  return dims;
}

Tensor IterationBatch::many(std::size_t i) const {
  return is_many[i] ? in[i] : expand(in[i], with_time(in[i].dims()));
}

bool IterationBatch::only_first_is_many() const {
  for (std::size_t i = 0; i < is_many.size(); ++i)
    if (static_cast<bool>(is_many[i]) != (i == 0)) return false;
  return true;
}

std::vector<int> behind_time(std::vector<int> axes) {
  for (int& axis : axes) ++axis;
  return axes;
}

namespace {

/// Named operands are matched by their dims: one operand must have all dims.
Tensors broadcast_named(const IterationBatch& at) {
  const Dims wanted = at.with_time(at.step_out[0].dims());
  Tensors in(at.in.begin(), at.in.end());
  const auto has_all = [&](const Tensor& x) { return x.dims().size() == wanted.size(); };
  if (std::none_of(in.begin(), in.end(), has_all))
    for (std::size_t i = 0; i < in.size(); ++i)
      if (at.is_many[i]) {
        in[i] = expand(in[i], wanted);
        break;
      }
  const Tensor result = reel::bind(at.op, in, at.attrs);
  return {result.dims() == wanted ? result : transpose(result, Axes(wanted))};
}

/// Plain operands are matched from the end: axes that an iteration's operand lacks are inserted
/// behind the loop's dim.
Tensors broadcast_plain(const IterationBatch& at) {
  const int rank = at.step_out[0].rank();
  Tensors in;
  for (std::size_t i = 0; i < at.in.size(); ++i) {
    const Tensor& x = at.in[i];
    const int missing = rank + 1 - x.rank();
    if (!at.is_many[i] || missing == 0) {
      in.push_back(x);
      continue;
    }
    Dims dims{x.dims()[0]};
    dims.insert(dims.end(), static_cast<std::size_t>(missing), Dim(1));
    dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
    in.push_back(reshape(x, dims));
  }
  return {reel::bind(at.op, in, at.attrs)};
}

}  // namespace

Tensors pointwise_across_iterations(const IterationBatch& at) {
  if (at.step_out.size() != 1) return {};
  const bool is_named =
      std::any_of(at.in.begin(), at.in.end(), [](const Tensor& x) { return x.type().is_named(); });
  return is_named ? broadcast_named(at) : broadcast_plain(at);
}

}  // namespace reel
