// scatter_add, scatter_max: combine updates into a tensor at indices.
#include <algorithm>
#include <cstring>
#include <limits>
#include <xsimd/xsimd.hpp>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/dims/same_name.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/core/ops/kernels/long_sums.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/slice.h"

namespace reel {
namespace {

// ---- Kernels ------------------------------------------------------------------------------------

/// Adds an update to the stored values.
struct Sum {
  template <class T>
  static void join(T* to, const T* update, std::int64_t count) {
    if (count == 1) {
      *to += *update;
      return;
    }
    using Batch = xsimd::batch<T>;
    constexpr auto kLanes = static_cast<std::int64_t>(Batch::size);
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      (Batch::load_unaligned(to + i) + Batch::load_unaligned(update + i)).store_unaligned(to + i);
    for (; i < count; ++i) to[i] += update[i];
  }
};
/// Keeps the larger value; NaN is the result, as in max.
struct Largest {
  template <class T>
  static void join(T* to, const T* update, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      if (update[i] > to[i] || update[i] != update[i]) to[i] = update[i];
  }
};

/// Adds runs of updates to places of a buffer of `elements`. each(join) calls join(first element of
/// a place) for each run that has one, with `update` at the run.
template <class T, class Each>
void add_all(T* to, std::int64_t elements, std::int64_t updates, std::int64_t run, const T*& update,
             const Each& each) {
  if (run == 0) return;
  const T* const first_update = update;
  const auto add_plainly = [&](std::int64_t first) { Sum::join(to + first, update, run); };
  constexpr bool kMayBeLong = std::is_same_v<T, float>;
  LongRows long_rows(elements / run, run, kMayBeLong ? updates / run : 0);
  if (long_rows.counts()) {
    each([&](std::int64_t first) { long_rows.count(first); });
    update = first_update;
  }
  if (!long_rows.has_any()) return each(add_plainly);
  const ExactDivision row_of(run);
  LongSums<T> sums(to, elements / run, run, updates / run);
  each([&](std::int64_t first) {
    if (!long_rows.has(first)) return add_plainly(first);
    sums.add(row_of(first), update,
             [](T* row, const T* term, std::int64_t size) { Sum::join(row, term, size); });
  });
  sums.finish();
}

template <class Join>
void scatter_kernel(KernelArgs& a) {
  const GatherAttrs& attrs = a.attr<GatherAttrs>();
  const TensorType type = a.input(0).type();
  const Tensor &indices = a.input(1), &updates = a.input(2);
  const Places places = places_of(a.op.name, indices, type, attrs);
  // Only the first input may give its buffer, because its values are kept.
  KernelArgs first{a.op, a.attrs, a.in.first(1), a.may_reuse, a.types, a.out};
  const char* kept = a.input(0).data<char>();
  const Tensor& out = first.reuse();
  if (out.data<char>() != kept)
    std::memcpy(out.data<char>(), kept, static_cast<std::size_t>(type.bytes()));
  if (updates.type().numel() == 0) return;
  const GatherWalk walk(type, indices.type(), attrs);
  visit(type.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) {
      T* to = out.data<T>();
      const T* update = updates.data<T>();
      const std::int64_t run = walk.run();
      const auto each = [&](const auto& join) {
        walk.each(places, [&](std::int64_t first_element) {
          if (first_element != kNoPlace) join(first_element);
          update += run;
        });
      };
      if constexpr (std::is_same_v<Join, Sum>) {
        add_all(to, type.numel(), updates.type().numel(), run, update, each);
      } else {
        each([&](std::int64_t first) { Join::join(to + first, update, run); });
      }
    }
  });
}

// ---- Ops ----------------------------------------------------------------------------------------

/// verb: the combination of updates in messages, as in "cannot be added to".
void scatter_type(TypeArgs& a, std::string_view verb) {
  const TensorType &to = a.in[0], &indices = a.in[1], &updates = a.in[2];
  const GatherAttrs& attrs = a.attr<GatherAttrs>();
  check_indices(a.op.name, to, indices, attrs);
  if (to.dtype() != updates.dtype())
    throw DTypeError(str(a.op.name, ": dtypes differ: ", updates, " cannot be ", verb, " ", to,
                         "; cast one of them"));
  if (to.dtype() == boolean)
    throw DTypeError(str(a.op.name, ": takes numbers, got ", to, "; cast it to i32"));
  const TensorType expected = to.with(gathered_dims(to, indices, attrs));
  if (updates != expected && updates.is_known() && expected.is_known())
    throw ShapeError(str(a.op.name, ": updates are ", updates, ", but indices ", indices, " along ",
                         axis_name(to, attrs.axis), " take ", expected,
                         one_dim_hint(updates.dims(), expected.dims())));
  a.out.push_back(to);
}

/// True if padding of the updates must be replaced first, so that it does not reach the result
/// along their new axes. If the indices mark the padding, the kernel skips it.
bool hides_padding(const TensorType& updates, const TensorType& indices, const GatherAttrs& attrs) {
  if (!updates.is_ragged()) return false;
  std::vector<int> added;
  for (std::size_t k = 0; k < attrs.matched.size(); ++k)
    if (attrs.matched[k] < 0) added.push_back(attrs.axis + static_cast<int>(added.size()));
  if (!reduces_padding(updates, added)) return false;
  for (int i = 0; i < updates.rank(); ++i) {
    if (!is_masked(updates, i)) continue;
    const Dim& dim = dim_at(updates, i);
    const auto in_indices = [&](const Dim& d) { return contains(indices.dims(), d); };
    if (!in_indices(dim) ||
        !std::all_of(dim.length_dims().begin(), dim.length_dims().end(), in_indices))
      return true;
  }
  return false;
}

Tensor bind_scatter(const Op& op, Tensor to, const Tensor& indices, const Tensor& updates,
                    const AttrsRef& attrs, const NestedList& neutral) {
  const bool hides = hides_padding(updates.type(), indices.type(), get<GatherAttrs>(attrs.get()));
  return bind(op, {std::move(to), indices, hides ? mask_padding(updates, neutral) : updates},
              attrs);
}

OpSamples scatter_samples() {
  OpSamples samples = gather_samples();
  for (OpSample& sample : samples) {
    const TensorType &to = sample.inputs[0].type, &indices = sample.inputs[1].type;
    sample.inputs.push_back(
        {to.with(gathered_dims(to, indices, get<GatherAttrs>(sample.attrs.get())))});
  }
  return samples;
}

/// Scatters the updates of each row of vmap into the row's own tensor. Iterations of a loop have
/// no such rule: all their tensors would exist at once, while a loop makes one after the other.
Tensors scatter_across_rows(const IterationBatch& at) {
  if (!at.is_vmap || at.time.is_ragged()) return {};
  GatherAttrs attrs = at.attr<GatherAttrs>();
  ++attrs.axis;
  for (int& matched : attrs.matched)
    if (matched >= 0) ++matched;
  if (at.is_many[1]) attrs.matched.insert(attrs.matched.begin(), 0);
  return {bind(at.op, {at.many(0), at.in[1], at.many(2)}, make_attrs(std::move(attrs)))};
}

/// Adds the updates of all steps to the sum of the steps' tensors.
Tensors scatter_add_across_iterations(const IterationBatch& at) {
  if (!at.is_summed) return scatter_across_rows(at);
  GatherAttrs attrs = at.attr<GatherAttrs>();
  if (at.is_many[0] || !at.is_many[2] || attrs.axis != 0 || at.time.is_ragged()) return {};
  for (const int matched : attrs.matched)
    if (matched >= 0) return {};
  attrs.matched.insert(attrs.matched.begin(), -1);
  const Tensor steps = sum(ones({at.time}, at.in[0].dtype()));
  return {bind(at.op, {at.in[0] * steps, at.many(1), at.in[2]}, make_attrs(std::move(attrs)))};
}

/// The updates have the axes that gather would return. Axes that x lacks are added up.
void scattered_axes(const OpCall& call, AxisFactors& f) {
  const auto& attrs = call.attr<GatherAttrs>();
  for (std::size_t i = 0; i < attrs.matched.size(); ++i)
    f.in(1, static_cast<int>(i)) = attrs.matched[i] < 0 ? f.add(Role::unordered) : attrs.matched[i];
  int next = 0;
  for (int axis = 0; axis < call.in[0].rank(); ++axis) {
    for (std::size_t i = 0; axis == attrs.axis && i < attrs.matched.size(); ++i)
      if (attrs.matched[i] < 0) f.in(2, next++) = f.in(1, static_cast<int>(i));
    if (!attrs.is_indexed(axis)) f.in(0, axis) = f.in(2, next++) = axis;
  }
}

}  // namespace

const Op scatter_add_op{
    .name = "scatter_add",
    .type = [](TypeArgs& a) { scatter_type(a, "added to"); },
    .kernel = scatter_kernel<Sum>,
    .vjp =
        [](Vjp& at) {
          const Tensor g = at.cotangent();
          // Updates in the padding of the result have no effect.
          const int axis = at.attr<GatherAttrs>().axis;
          if (at.needs(2))
            at.add(2, gather_positions(without_padding(g, axis), at.input(1), at.attrs()));
          if (at.needs(0)) at.add(0, g);
        },
    .reads = {.inputs = 0b10},
    .samples = scatter_samples,
    .iteration_batching = scatter_add_across_iterations,
    .gains_from_batching = true,
    .updates_input = true,
    .axes = scattered_axes,
    .zero_if = [](const Attrs*, std::uint32_t zeros) { return (zeros & 0b101) == 0b101; },
    .fails = index_fails,
    .reads_lengths = index_reads_lengths,
};

namespace {

// Ties share the gradient: the stored value, and all updates of one place that equal the result, or
// are NaN if it is.
const Op scatter_max_op{
    .name = "scatter_max",
    .type = [](TypeArgs& a) { scatter_type(a, "compared with"); },
    .kernel = scatter_kernel<Largest>,
    .vjp =
        [](Vjp& at) {
          const DType dtype = at.input_type(0).dtype();
          if (!is_float(dtype)) return;
          const Tensor &indices = at.input(1), &y = at.output();
          const auto is_winner = [](const Tensor& x, const Tensor& largest) {
            return logical_or(equal(x, largest), isnan(x));
          };
          const Tensor stayed = is_winner(at.input(0), y),
                       won = is_winner(at.input(2), gather_positions(y, indices, at.attrs()));
          const Tensor ties =
              scatter_positions(cast(stayed, dtype), indices, cast(won, dtype), at.attrs());
          const Tensor g = without_padding(at.cotangent(), at.attr<GatherAttrs>().axis);
          const Tensor share = g / maximum(ties, 1);
          if (at.needs(0)) at.add(0, where(stayed, share, 0));
          if (at.needs(2)) at.add(2, where(won, gather_positions(share, indices, at.attrs()), 0));
        },
    .reads = {.inputs = 0b111, .outputs = 1},
    .samples = scatter_samples,
    .iteration_batching = scatter_across_rows,
    .updates_input = true,
    .fails = index_fails,
};

/// Arguments of bind for the public functions: updates may have their named dims in any order.
struct Scattered {
  Tensor indices, updates;
  AttrsRef attrs;
};

double lowest_number(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return dtype == i32 ? std::numeric_limits<std::int32_t>::min()
                      : static_cast<double>(std::numeric_limits<std::int64_t>::min());
}

/// Returns updates with the dims `wanted`, and `neutral` in their padding. Updates that gather
/// returned have slices of these dims.
Tensor with_whole_dims(const Tensor& updates, const Dims& wanted, double neutral) {
  Tensor result = updates;
  for (const Dim& dim : wanted) {
    const int axis = dim.is_ragged() ? find_axis(updates.dims(), dim) : -1;
    if (axis < 0 || contains(updates.dims(), dim)) continue;
    if (result.block() == updates.block()) result = mask_padding(updates, neutral);
    result = shift(result, computed_plainly([] { return full({}, 0, i32); }), axis, dim, neutral);
  }
  return result;
}

Scattered prepare(std::string_view op, const Tensor& to, const Tensor& given,
                  const Tensor& given_updates, const Axis& along, double neutral) {
  check_defined(op, given);
  check_defined(op, given_updates);
  GatherAttrs attrs{.axis = along.in(to, op)};
  const Tensor indices = with_length_dims(given, to.type(), attrs);
  attrs = match_dims(to.type(), indices.type(), std::move(attrs));
  const Dims wanted = gathered_dims(to.type(), indices.type(), attrs);
  const Tensor updates =
      has_slices() ? with_whole_dims(given_updates, wanted, neutral) : given_updates;
  std::vector<Axis> order;
  bool is_sorted = true;
  if (to.type().is_named() && updates.type().is_named())
    for (const Dim& dim : wanted) {
      const int at = find(updates.dims(), dim);
      is_sorted = is_sorted && at == static_cast<int>(order.size());
      if (at >= 0) order.emplace_back(at);
    }
  const bool is_other_order = !is_sorted && static_cast<int>(order.size()) == updates.rank();
  return {indices, is_other_order ? transpose(updates, order) : updates,
          make_attrs(std::move(attrs))};
}

}  // namespace

Tensor scatter_positions(Tensor to, const Tensor& indices, const Tensor& updates,
                         const AttrsRef& attrs) {
  return bind_scatter(scatter_add_op, std::move(to), indices, updates, attrs, 0);
}

// ---- Public functions ---------------------------------------------------------------------------

Tensor scatter_add(const Tensor& like, const Tensor& indices, const Tensor& updates,
                   const Axis& axis) {
  const Scattered in = prepare("scatter_add", like, indices, updates, axis, 0);
  return scatter_positions(like, in.indices, in.updates, in.attrs);
}

Tensor scatter_max(const Tensor& like, const Tensor& indices, const Tensor& updates,
                   const Axis& axis) {
  check_defined("scatter_max", like);
  const Scattered in =
      prepare("scatter_max", like, indices, updates, axis, lowest_number(like.dtype()));
  return bind_scatter(scatter_max_op, like, in.indices, in.updates, in.attrs, lowest(like.dtype()));
}

namespace {
const Op* const kScatterOps[] = {&scatter_add_op, &scatter_max_op};
}
std::span<const Op* const> scatter_ops() { return kScatterOps; }

}  // namespace reel
