#include "reel/core/ops/loop/entries.h"

#include <algorithm>
#include <cstring>

#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/padding_runs.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

/// Attributes of fill_running and collect_running.
struct SeenEntriesAttrs {
  /// Of the result, with the sizes of the operand's. Finished entries then have the length of the
  /// first running one along each dim, so they have the same padding, which is set to zero. Empty:
  /// the operand's, whose padding stays.
  Dims dims = {};
  /// The number of dims in front of the mask that are rows of vmap: in each of them, the first
  /// running entry is another one.
  int rows = 0;
  /// Where a result of fill_running is kept and found again. Changes no value, so it is no field.
  std::shared_ptr<FilledEntries> kept = {};

  template <class F>
  static void fields(F&& f) {
    f("dims", &SeenEntriesAttrs::dims);
    f("rows", &SeenEntriesAttrs::rows);
  }
};

/// Returns the attributes; null if the op has none.
const SeenEntriesAttrs* seen_attrs(const Attrs* attrs) {
  return attrs ? &get<SeenEntriesAttrs>(attrs) : nullptr;
}
/// True if the result has no padding of its own.
bool clears_padding(const SeenEntriesAttrs* seen) { return seen && !seen->dims.empty(); }

void entries_type(TypeArgs& a) {
  const TensorType &x = a.in[0], &mask = a.in[1];
  if (mask.rank() > x.rank()) refuse_axis(x, mask.rank() - 1);
  check_operand(a.op.name, "the mask", mask,
                TensorType(boolean, {x.dims().begin(), x.dims().begin() + mask.rank()}));
  const SeenEntriesAttrs* const seen = seen_attrs(a.attrs);
  if (seen && seen->rows > mask.rank()) refuse_axis(mask, seen->rows - 1);
  if (clears_padding(seen)) check_operand(a.op.name, "the value", x, x.with(seen->dims));
  a.out.push_back(clears_padding(seen) ? x.with(seen->dims) : x);
}

/// Views the entries of one row of x as [entries] x [inner]. The mask's dims are in front; the
/// public functions transpose so that this holds.
struct Entries {
  std::int64_t begin, end, bytes;
  std::int64_t first_running;  // -1: none
};
/// Calls fn for the entries of each row; there is one row unless the attributes name several.
template <class Fn>
void each_row(const Tensor& x, const Tensor& mask, const SeenEntriesAttrs* seen, Fn&& fn) {
  const std::int64_t all = mask.type().numel();
  if (!all) return;
  std::int64_t rows = 1;
  for (int axis = 0; seen && axis < seen->rows; ++axis)
    rows *= mask.type().sizes()[static_cast<std::size_t>(axis)];
  const bool* running = mask.data<bool>();
  for (std::int64_t row = 0, count = all / rows; row < rows; ++row) {
    const std::int64_t begin = row * count, end = begin + count;
    const std::int64_t first = std::find(running + begin, running + end, true) - running;
    fn(Entries{begin, end, x.type().bytes() / all, first < end ? first : -1});
  }
}

void zero_padding(const Tensor& x) {
  const auto item = static_cast<std::int64_t>(size_of(x.dtype()));
  for_each_padding(x.type(), [&](std::int64_t first, std::int64_t count) {
    std::memset(x.data<char>() + first * item, 0, static_cast<std::size_t>(count * item));
  });
}

bool same_mask(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         !std::memcmp(a.data<bool>(), b.data<bool>(), static_cast<std::size_t>(a.type().bytes()));
}

void fill_running_kernel(KernelArgs& a) {
  const Tensor &x = a.input(0), &mask = a.input(1);
  const SeenEntriesAttrs* const seen = seen_attrs(a.attrs);
  FilledEntries* const kept = seen ? seen->kept.get() : nullptr;
  if (kept && kept->value.is_defined() && same_mask(kept->mask, mask) &&
      std::ranges::equal(kept->value.type().sizes(), a.types[0].sizes())) {
    a.out[0] = with_dims_of(kept->value, a.types[0]);
    return;
  }
  Tensor& out = a.make();
  each_row(x, mask, seen, [&](const Entries& row) {
    for (std::int64_t i = row.begin; i < row.end; ++i) {
      const bool is_own = mask.data<bool>()[i] || row.first_running < 0;
      std::memcpy(out.data<char>() + i * row.bytes,
                  x.data<char>() + (is_own ? i : row.first_running) * row.bytes,
                  static_cast<std::size_t>(row.bytes));
    }
  });
  if (clears_padding(seen)) zero_padding(out);
  if (kept) *kept = {out, mask};
}

/// Returns for each entry whether it is in the padding of a ragged entry dim.
std::vector<std::uint8_t> entries_in_padding(const Tensor& mask) {
  std::vector<std::uint8_t> result(static_cast<std::size_t>(mask.type().numel()));
  for_each_padding(mask.type(), [&](std::int64_t first, std::int64_t count) {
    std::fill_n(result.begin() + first, count, 1);
  });
  return result;
}

/// Adds the rows of finished entries to the first running one. Entries in padding add nothing:
/// their elements may be anything.
template <class T>
void collect_row(const Entries& row, const bool* running, const std::uint8_t* is_padding,
                 const T* from, T* to) {
  const std::int64_t width = row.bytes / static_cast<std::int64_t>(sizeof(T));
  if (row.first_running < 0) {
    std::copy(from + row.begin * width, from + row.end * width, to + row.begin * width);
    return;
  }
  T* first = to + row.first_running * width;
  std::copy_n(from + row.first_running * width, width, first);
  for (std::int64_t i = row.begin; i < row.end; ++i) {
    if (i == row.first_running) continue;
    if (running[i]) {
      std::copy_n(from + i * width, width, to + i * width);
      continue;
    }
    std::fill_n(to + i * width, width, T{});
    for (std::int64_t k = 0; k < width && !is_padding[i]; ++k)
      first[k] = static_cast<T>(first[k] + from[i * width + k]);
  }
}

void collect_running_kernel(KernelArgs& a) {
  const Tensor &g = a.input(0), &mask = a.input(1);
  const SeenEntriesAttrs* const seen = seen_attrs(a.attrs);
  Tensor& out = a.make();
  const std::vector<std::uint8_t> is_padding = entries_in_padding(mask);
  visit(g.dtype(), [&](auto zero) {
    using T = decltype(zero);
    each_row(g, mask, seen, [&](const Entries& row) {
      collect_row(row, mask.data<bool>(), is_padding.data(), g.data<T>(), out.data<T>());
    });
  });
  if (clears_padding(seen)) zero_padding(out);
}

void entries_vjp(Vjp& at, const Op& transposed) {
  const Tensor g = at.cotangent();
  const SeenEntriesAttrs* const seen = seen_attrs(at.attrs().get());
  if (!seen)
    at.add(0, bind(transposed, {mask_padding(g), at.input(1)}));
  else if (!clears_padding(seen))
    at.add(0, bind(transposed, {mask_padding(g), at.input(1)},
                   make_attrs(SeenEntriesAttrs{.rows = seen->rows})));
  else
    at.add(0, bind(transposed, {g, at.input(1)},
                   make_attrs(SeenEntriesAttrs{at.input_type(0).dims(), seen->rows})));
}

/// Each iteration has entries of its own.
Tensors entries_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  SeenEntriesAttrs attrs;
  if (at.attrs) attrs = at.attr<SeenEntriesAttrs>();
  attrs.kept = {};
  if (!attrs.dims.empty()) attrs.dims = at.with_time(attrs.dims);
  ++attrs.rows;
  return {bind(at.op, {at.many(0), at.many(1)}, make_attrs(std::move(attrs)))};
}

OpSamples entries_samples() {
  const Dim row("row", 2), batch("batch", 3), time("time", tensor({2, 1, 2}, {batch}));
  const TensorType mask(boolean, {batch});
  return OpSamples{
      {{{TensorType(f32, {batch, Dim("width", 2)})}, {mask, 0, 1, false}}},
      {{{TensorType(f32, {batch, time})}, {mask, 1, 1, false}},  // all run: equal lengths
       make_attrs(SeenEntriesAttrs{{batch, time}})},
      {{{TensorType(f32, {row, batch, Dim("width", 2)})},
        {TensorType(boolean, {row, batch}), 0, 1, false}},
       make_attrs(SeenEntriesAttrs{.rows = 1})}};
}

// Values that finished entries read came from the first running one: the ops are each other's
// transposes.
extern const Op collect_running_op;
const Op fill_running_op{
    .name = "fill_running",
    .type = entries_type,
    .kernel = fill_running_kernel,
    .storage = OpStorage::any,
    .vjp = [](Vjp& at) { entries_vjp(at, collect_running_op); },
    .reads = {.inputs = 0b10},
    .samples = entries_samples,
    .iteration_batching = entries_across_iterations,
};
const Op collect_running_op{
    .name = "collect_running",
    .type = entries_type,
    .kernel = collect_running_kernel,
    .vjp = [](Vjp& at) { entries_vjp(at, fill_running_op); },
    .reads = {.inputs = 0b10},
    .samples = entries_samples,
    .iteration_batching = entries_across_iterations,
};

/// Returns the type's dims with the dims of the mask in front.
Dims with_entries_first(const TensorType& type, const Tensor& mask) {
  Dims dims;
  dims.reserve(type.dims().size());
  dims.insert(dims.end(), mask.dims().begin(), mask.dims().end());
  for (const Dim& dim : type.dims())
    if (!contains(mask.dims(), dim)) dims.push_back(dim);
  return dims;
}

}  // namespace

std::optional<Tensor> leaf_mask(const TensorType& type, const Tensor& running) {
  if (type.is_list() || !type.is_named()) return std::nullopt;
  std::vector<Axis> missing;
  for (const Dim& dim : running.dims())
    if (!contains(type.dims(), dim)) missing.push_back(dim);
  if (static_cast<int>(missing.size()) == running.rank()) return std::nullopt;
  if (missing.empty()) return running;
  return any(running, Axes(missing));
}

namespace {
/// Runs an op on [entries] x [inner], for x with its dims in any order.
Tensor apply_to_rows(const Op& op, const Tensor& x, const Tensor& running) {
  const std::optional<Tensor> mask = leaf_mask(x.type(), running);
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
bool has_running_lengths(const Dim& dim, const Tensor& running) {
  if (is_tracing() || running.is_traced() || !dim.node()->lengths) return false;
  ModeScope plain({});
  const Tensor lengths(dim.node()->lengths);
  if (lengths.type().is_ragged()) return false;
  const Tensor seen = apply_to_rows(fill_running_op, lengths, running);
  return !std::memcmp(seen.data<char>(), lengths.data<char>(),
                      static_cast<std::size_t>(lengths.type().bytes()));
}

/// Returns a mask of the elements that the first running entry has too; nullopt if finished entries
/// have the same ones. Entries differ in this along a ragged dim whose lengths run over them.
std::optional<Tensor> has_running(const TensorType& type, const Tensor& running) {
  const auto runs_over_entries = [&](const Dim& dim) {
    return std::any_of(dim.length_dims().begin(), dim.length_dims().end(),
                       [&](const Dim& of) { return contains(running.dims(), of); });
  };
  bool differs = false;
  for (int i = 0; i < type.rank(); ++i)
    if (const Dim& dim = type.dims()[i]; is_masked(type, i) && runs_over_entries(dim))
      differs = differs || !has_running_lengths(dim, running);
  if (!differs) return std::nullopt;
  return apply_to_rows(fill_running_op, mask_padding(ones(type.dims(), boolean), false), running);
}

bool is_eager(const Tensor& x) { return !is_tracing() && !x.is_traced(); }

/// Applies fill_running or collect_running to an x whose finished entries have the first running
/// one's lengths, with result dims of x's sizes.
Tensor apply_seen(const Op& op, const Tensor& x, const Tensor& running, const Dims& dims,
                  std::shared_ptr<FilledEntries> kept = {}) {
  const Tensor mask = *leaf_mask(x.type(), running);
  const Dims order = with_entries_first(x.type(), mask);
  if (order == x.dims())
    return bind(op, {x, mask}, make_attrs(SeenEntriesAttrs{dims, 0, std::move(kept)}));
  Dims made;
  made.reserve(order.size());
  for (const Dim& dim : order) made.push_back(dims[static_cast<std::size_t>(find(x.dims(), dim))]);
  return transpose(bind(op, {transpose(x, order), mask},
                        make_attrs(SeenEntriesAttrs{std::move(made), 0, std::move(kept)})),
                   dims);
}
}  // namespace

// A dim with different lengths stays unchanged (SubstituteDims). If a finished entry is longer than
// the first running one, it keeps its own elements beyond that entry's end. An invented number,
// above all zero, would be less safe as a divisor.
//
// Padding is zero in the result: it may be NaN in x, and counts where an array gives its elements
// their whole dims.
Tensor fill_running(const Tensor& x, const Tensor& running) {
  if (x.type().is_list()) return x;  // shared, whatever dims its elements have
  if (!leaf_mask(x.type(), running)) return mask_padding(x);
  const std::optional<Tensor> from_running = has_running(x.type(), running);
  if (!from_running && x.type().is_ragged() && is_eager(x))
    return apply_seen(fill_running_op, x, running, x.dims());
  const Tensor valid = mask_padding(x), shown = apply_to_rows(fill_running_op, valid, running);
  return from_running ? in_order_of(x, where(*from_running, shown, valid)) : shown;
}
Tensor fill_running_with_padding(const Tensor& x, const Tensor& running) {
  if (x.type().is_list() || !leaf_mask(x.type(), running)) return x;
  const std::optional<Tensor> from_running = has_running(x.type(), running);
  const Tensor shown = apply_to_rows(fill_running_op, x, running);
  return from_running ? in_order_of(x, where(*from_running, shown, x)) : shown;
}
std::optional<Tensor> fill_running_as(const Tensor& x, const Tensor& running, const Dims& dims,
                                      std::shared_ptr<FilledEntries> kept) {
  if (x.type().is_list() || !leaf_mask(x.type(), running)) return std::nullopt;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].size() != x.dims()[i].size()) return std::nullopt;
  if (has_running(x.type().with(dims), running)) return std::nullopt;
  return apply_seen(fill_running_op, x, running, dims, std::move(kept));
}
Tensor collect_running(const Tensor& x, const Tensor& running) {
  if (x.type().is_list()) return x;
  const std::optional<Tensor> from_running = has_running(x.type(), running);
  if (!from_running && x.type().is_ragged() && is_eager(x) && leaf_mask(x.type(), running))
    return apply_seen(collect_running_op, x, running, x.dims());
  const Tensor valid = mask_padding(x);
  if (!from_running) return apply_to_rows(collect_running_op, valid, running);
  const Tensor zero = zeros_like(x);
  const Tensor moved = in_order_of(x, where(*from_running, valid, zero)),
               own = in_order_of(x, where(*from_running, zero, valid));
  return mask_padding(apply_to_rows(collect_running_op, moved, running) + own);
}

Tensor zero_finished(const Tensor& x, const Tensor& running) {
  const std::optional<Tensor> mask = leaf_mask(x.type(), running);
  if (!mask) return x;
  return in_order_of(x, where(*mask, x, zeros_like(x)));
}

Tensor keep_finished(const Tensor& next, const Tensor& before, const Tensor& running) {
  const std::optional<Tensor> mask = leaf_mask(next.type(), running);
  if (!mask) return next;
  return in_order_of(next, where(*mask, next, before));
}

bool all_running(const Tensor& running) {
  const bool* values = running.data<bool>();
  return std::all_of(values, values + running.type().numel(), [](bool b) { return b; });
}
bool any_running(const Tensor& running) {
  const bool* values = running.data<bool>();
  return std::any_of(values, values + running.type().numel(), [](bool b) { return b; });
}

int rows_of_entry_op(const Attrs* attrs) { return attrs ? get<SeenEntriesAttrs>(attrs).rows : 0; }

namespace {
const Op* const kEntryOps[] = {&fill_running_op, &collect_running_op};
}
std::span<const Op* const> entry_ops() { return kEntryOps; }

}  // namespace reel
