// checked_logits: refuses logits that are no distribution before a draw.
#include "reel/core/ops/creation/draw_checks.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/shape/padding_runs.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

/// Returns a flag for each element: true for padding. Empty for types without padding.
std::vector<char> find_padding(const TensorType& type) {
  std::vector<char> result(type.is_ragged() ? static_cast<std::size_t>(type.numel()) : 0);
  for_each_padding(type, [&](std::int64_t first, std::int64_t count) {
    std::fill_n(result.begin() + first, count, true);
  });
  return result;
}

template <class Fn>
void visit_floats(const Tensor& x, const Fn& fn) {
  x.dtype() == f32 ? fn(x.data<float>()) : fn(x.data<double>());
}

/// Throws ArgumentError if no element first + k step can be drawn.
template <class T>
void check_line(const T* x, const std::vector<char>& is_padding, const TensorType& type,
                std::int64_t first, std::int64_t count, std::int64_t step, std::int64_t entry,
                int axis) {
  bool has_any = false, has_some = false;
  for (std::int64_t at = first; at < first + count * step; at += step) {
    if (!is_padding.empty() && is_padding[static_cast<std::size_t>(at)]) continue;
    if (x[at] != x[at])
      throw ArgumentError(str("categorical: the logit", place_of_element(at, type), " is NaN"));
    has_any = true;
    has_some = has_some || x[at] != -std::numeric_limits<T>::infinity();
  }
  if (has_any && !has_some)
    throw ArgumentError(str("categorical: all logits along ", axis_name(type, axis), " are -inf",
                            place_of_element(entry, reduced_type(type, {axis})),
                            ", so that there is nothing to draw"));
}

void check_logits(KernelArgs& a) {
  const int axis = a.attr<ReduceAttrs>().axes[0];
  const Tensor& logits = a.input(0);
  const TensorType& type = logits.type();
  const Reduced view = view_axes(type, {axis});
  const std::vector<char> is_padding = find_padding(type);
  visit_floats(logits, [&](const auto* x) {
    for (std::int64_t entry = 0; entry < view.outer * view.inner; ++entry)
      check_line(x, is_padding, type, entry / view.inner * view.n * view.inner + entry % view.inner,
                 view.n, view.inner, entry, axis);
  });
  a.alias(0, 0);
}

}  // namespace

const Op checked_logits_op{
    .name = "checked_logits",
    .type =
        [](TypeArgs& a) {
          check_axes(a.in[0], a.attr<ReduceAttrs>().axes);
          a.out.push_back(a.in[0]);
        },
    .kernel = check_logits,
    .storage = OpStorage::input,
    .no_vjp = "a draw is a constant to gradients",
    .samples =
        [] {
          const Dims& dims = sample_dims();
          const auto sample = [](const Dims& x, int axis, DType dtype = f32) {
            return OpSample{{{TensorType(dtype, x), -2, 2, false}}, reduce_attrs({axis})};
          };
          return OpSamples{sample({3}, 0),  sample({2, 5}, 1), sample({5, 2}, 0, f64),
                           sample(dims, 1), sample(dims, 2),   sample({0, 3}, 1)};
        },
    .iteration_batching = axes_across_iterations,
    .axes = axes_beside_reduced,
    .fails = [](const Attrs*) { return Failures{.values = 0b1}; },
    .reads_lengths = [](const OpCall&, std::size_t, int) { return true; },
};

Tensor checked_logits(const Tensor& logits, int axis) {
  return bind(checked_logits_op, {logits}, reduce_attrs({axis}));
}

}  // namespace reel
