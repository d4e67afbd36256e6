#include "reel/core/ops/loop/entries.h"

#include <algorithm>
#include <cstring>

#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

Tensor bind_collect_live(const Tensor& g, const Tensor& mask);

/// Views x as [entries] x [inner]. Requires the mask's dims in front; the public functions
/// transpose so that this holds.
struct Rows {
  std::int64_t count, bytes;
  std::int64_t first_live;  // -1: none
};
Rows rows_of(const Tensor& x, const Tensor& mask) {
  const std::int64_t count = mask.type().numel();
  const bool* live = mask.data<bool>();
  const std::int64_t first = std::find(live, live + count, true) - live;
  return {count, count ? x.type().bytes() / count : 0, first < count ? first : -1};
}

const Op fill_live_op{
    .name = "fill_live",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          const Tensor &x = a.input(0), &mask = a.input(1);
          const Rows rows = rows_of(x, mask);
          Tensor& out = a.make();
          std::memcpy(out.data<char>(), x.data<char>(), static_cast<std::size_t>(x.type().bytes()));
          if (rows.first_live < 0) return;
          const char* source = x.data<char>() + rows.first_live * rows.bytes;
          for (std::int64_t i = 0; i < rows.count; ++i)
            if (!mask.data<bool>()[i])
              std::memcpy(out.data<char>() + i * rows.bytes, source, rows.bytes);
        },
    // Values that finished entries read came from the first running one; see collect_live.
    .vjp = [](Vjp& at) { at.add(0, bind_collect_live(mask_padding(at.cotangent()), at.input(1))); },
    .reads = {.inputs = 0b10},
    .samples =
        [] {
          const Dim batch("batch", 3);
          return OpSamples{{{{TensorType(f32, {batch, Dim("width", 2)})},
                             {TensorType(boolean, {batch}), 0, 1, false}}}};
        },
};

const Op collect_live_op{
    .name = "collect_live",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
    .kernel =
        [](KernelArgs& a) {
          const Tensor &g = a.input(0), &mask = a.input(1);
          const Rows rows = rows_of(g, mask);
          Tensor& out = a.make();
          visit(g.dtype(), [&](auto zero) {
            using T = decltype(zero);
            const T* from = g.data<T>();
            T* to = out.data<T>();
            if (rows.first_live < 0) {
              std::copy(from, from + g.type().numel(), to);
              return;
            }
            const std::int64_t width = rows.bytes / static_cast<std::int64_t>(sizeof(T));
            T* first = to + rows.first_live * width;
            std::copy(from + rows.first_live * width, from + (rows.first_live + 1) * width, first);
            for (std::int64_t i = 0; i < rows.count; ++i) {
              if (i == rows.first_live) continue;
              const bool is_live = mask.data<bool>()[i];
              for (std::int64_t k = 0; k < width; ++k) {
                to[i * width + k] = is_live ? from[i * width + k] : T{};
                if (!is_live) first[k] = static_cast<T>(first[k] + from[i * width + k]);
              }
            }
          });
        },
    .vjp =
        [](Vjp& at) {
          at.add(0, bind(fill_live_op, {mask_padding(at.cotangent()), at.input(1)}));
        },
    .reads = {.inputs = 0b10},
    .samples = fill_live_op.samples,
};

/// Returns the type's dims with the dims of the mask in front.
Dims with_entries_first(const TensorType& type, const Tensor& mask) {
  Dims dims = mask.dims();
  for (const Dim& dim : type.dims())
    if (!contains(mask.dims(), dim)) dims.push_back(dim);
  return dims;
}

Tensor bind_collect_live(const Tensor& g, const Tensor& mask) {
  return bind(collect_live_op, {g, mask});
}

}  // namespace

std::optional<Tensor> leaf_mask(const TensorType& type, const Tensor& live) {
  if (type.is_list() || !type.is_named()) return std::nullopt;
  std::vector<Axis> missing;
  for (const Dim& dim : live.dims())
    if (!contains(type.dims(), dim)) missing.push_back(dim);
  if (static_cast<int>(missing.size()) == live.rank()) return std::nullopt;
  if (missing.empty()) return live;
  return any(live, Axes(missing));
}

namespace {
/// Runs an op on [entries] x [inner], for x with its dims in any order.
Tensor apply_to_rows(const Op& op, const Tensor& x, const Tensor& live) {
  const std::optional<Tensor> mask = leaf_mask(x.type(), live);
  if (!mask) return x;
  const Dims dims = with_entries_first(x.type(), *mask);
  if (dims == x.dims()) return bind(op, {x, *mask});
  return transpose(bind(op, {transpose(x, dims), *mask}), x.dims());
}

/// Transposes where's result to the order of x's dims: a mask with all dims of x decides their
/// order.
Tensor in_order_of(const Tensor& x, Tensor result) {
  return result.dims() == x.dims() ? result : transpose(result, x.dims());
}

/// Returns true if finished entries have the length of the first running one along a dim with
/// lengths over entries, as SubstituteDims gives them.
bool has_running_lengths(const Dim& dim, const Tensor& live) {
  if (is_tracing() || live.is_traced() || !dim.node()->lengths) return false;
  ModeScope plain({});
  const Tensor lengths(dim.node()->lengths);
  if (lengths.type().is_ragged()) return false;
  const Tensor seen = apply_to_rows(fill_live_op, lengths, live);
  return !std::memcmp(seen.data<char>(), lengths.data<char>(),
                      static_cast<std::size_t>(lengths.type().bytes()));
}

/// Returns a mask of the elements that the first running entry has too; nullopt if finished entries
/// have the same ones. Entries differ in this along a ragged dim whose lengths run over them.
std::optional<Tensor> has_live(const Tensor& x, const Tensor& live) {
  const TensorType& type = x.type();
  const auto runs_over_entries = [&](const Dim& dim) {
    return std::any_of(dim.length_dims().begin(), dim.length_dims().end(),
                       [&](const Dim& of) { return contains(live.dims(), of); });
  };
  bool differs = false;
  for (int i = 0; i < type.rank(); ++i)
    if (const Dim& dim = type.dims()[i]; is_masked(type, i) && runs_over_entries(dim))
      differs = differs || !has_running_lengths(dim, live);
  if (!differs) return std::nullopt;
  return apply_to_rows(fill_live_op, mask_padding(ones(type.dims(), boolean), false), live);
}
}  // namespace

// A dim with different lengths stays unchanged (SubstituteDims). If a finished entry is longer than
// the first running one, it keeps its own elements beyond that entry's end. An invented number,
// above all zero, would be less safe as a divisor.
Tensor fill_live(const Tensor& x, const Tensor& live) {
  if (x.type().is_list()) return x;  // shared, whatever dims its elements have
  // Padding may be NaN, and counts where an array gives its elements their whole dims.
  const Tensor valid = mask_padding(x), shown = apply_to_rows(fill_live_op, valid, live);
  const std::optional<Tensor> from_live = has_live(x, live);
  return from_live ? in_order_of(x, where(*from_live, shown, valid)) : shown;
}
Tensor collect_live(const Tensor& x, const Tensor& live) {
  if (x.type().is_list()) return x;
  const Tensor valid = mask_padding(x);
  const std::optional<Tensor> from_live = has_live(x, live);
  if (!from_live) return apply_to_rows(collect_live_op, valid, live);
  const Tensor zero = zeros_like(x);
  const Tensor moved = in_order_of(x, where(*from_live, valid, zero)),
               own = in_order_of(x, where(*from_live, zero, valid));
  return mask_padding(apply_to_rows(collect_live_op, moved, live) + own);
}

Tensor zero_ended(const Tensor& x, const Tensor& live) {
  const std::optional<Tensor> mask = leaf_mask(x.type(), live);
  if (!mask) return x;
  return in_order_of(x, where(*mask, x, zeros_like(x)));
}

Tensor keep_ended(const Tensor& next, const Tensor& before, const Tensor& live) {
  const std::optional<Tensor> mask = leaf_mask(next.type(), live);
  if (!mask) return next;
  return in_order_of(next, where(*mask, next, before));
}

bool all_live(const Tensor& live) {
  const bool* values = live.data<bool>();
  return std::all_of(values, values + live.type().numel(), [](bool b) { return b; });
}
bool any_live(const Tensor& live) {
  const bool* values = live.data<bool>();
  return std::any_of(values, values + live.type().numel(), [](bool b) { return b; });
}

namespace {
const Op* const kEntryOps[] = {&fill_live_op, &collect_live_op};
}
std::span<const Op* const> entry_ops() { return kEntryOps; }

}  // namespace reel
